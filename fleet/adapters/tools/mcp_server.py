"""The connection to one MCP server: made in the background, and made again when it ends."""

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any

from mcp import ClientSession, MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import CONNECTION_CLOSED, Implementation, ServerNotification, ToolListChangedNotification
from pydantic import JsonValue, ValidationError

from fleet.adapters.tools import mcp_http, mcp_stdio
from fleet.adapters.tools.mcp_config import Server, StdioTransport
from fleet.adapters.tools.tool import failed
from fleet.core.server_tools import ServerResult
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import Backoff, end_with_caller, isolate, keep_running, single_exception
from fleet.wire.mcp import LARGEST_RESULT, ToolSpec, clip, parse_page, parse_result

log = logging.getLogger(__name__)

CONNECT_SECONDS = 60.0
"""Longest time from the start of a server to its list of tools; some servers are downloaded first."""
ASK_SECONDS = 10.0
"""Longest wait for a page of tools."""
LOOK_SECONDS = 30.0
"""Interval of requests for the tool list. They also detect a server that has ended or hangs."""
STEADY_SECONDS = 15.0
"""A connection of this length counts as a success: the next attempt follows without a longer pause."""
MOST_TOOLS = 128
MOST_CALLS = 32
"""Pending calls of one server; further ones are refused, as they would only wait."""

_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE = 30.0
_MOST_PAGES = 20
_SHOWN = 200

_Dispatcher = JSONRPCDispatcher[Any]


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool of a server; `reads_only`: the server declares that it changes nothing, so a call may be repeated."""

    spec: ToolSpec
    reads_only: bool


@dataclass(frozen=True, slots=True)
class McpOptions:
    """The options of the connections to all servers."""

    seconds: float
    """Longest time of a call."""
    name: str = "fleet"
    """The client's name for the servers."""
    oldest: str = ""
    """Lowest accepted version of the protocol, a date such as 2024-11-05; empty for all versions of the SDK."""


class McpServer:
    """A server with its tools and calls; it may disconnect and reconnect at any time.

    Args:
        name: In the configuration.
        server: Its transport.
        options: Of the connection.
    """

    def __init__(self, name: str, server: Server, options: McpOptions) -> None:
        self.name = name
        self.tools: tuple[RemoteTool, ...] = ()
        """Its present tools; empty while it is disconnected."""
        self._server = server
        self._options = options
        self._dispatcher: _Dispatcher | None = None
        self._relist = asyncio.Event()
        self._calls = 0
        self._reason = ""
        """Why the last connection ended."""
        self._clock = asyncio.get_running_loop().time
        self._backoff = Backoff(first=0.5, limit=_LONGEST_PAUSE)

    async def run(self) -> None:
        """Connect, and reconnect whenever the connection ends, until cancelled."""
        await keep_running(f"MCP server {self.name}", self._attempt, self._backoff)

    async def call(self, tool: str, arguments: dict[str, JsonValue]) -> ServerResult:
        """Run one of its tools, once, within the time limit; failures are results."""
        dispatcher = self._dispatcher
        if dispatcher is None:
            return failed("not done, the server of this tool is away; it may be back soon")
        if self._calls >= MOST_CALLS:
            return failed("not done, the server of this tool has too many calls to do")
        self._calls += 1
        try:
            async with asyncio.timeout(self._options.seconds):
                answer = await dispatcher.send_raw_request("tools/call", {"name": tool, "arguments": arguments})
        except TimeoutError:
            self._relist.set()
            return failed(f"unknown whether it was done, the server did not answer within {self._options.seconds:g} s")
        except MCPError as error:
            self._relist.set()
            return failed(_explain(error))
        finally:
            self._calls -= 1
        return _result(answer)

    async def _attempt(self) -> None:
        began = self._clock()
        self._reason = "the connection failed"
        # A library may raise any exception: `isolate` logs it, and only this attempt ends. It may also lose our end.
        what = f"MCP server {self.name}"
        await end_with_caller(what, self._isolated(what))
        if self._clock() - began > STEADY_SECONDS:
            self._backoff.reset()
        raise Unavailable(self._reason)

    async def _isolated(self, what: str) -> None:
        await isolate(what, self._connect())

    async def _connect(self) -> None:
        try:
            async with self._streams() as (received, sent):
                dispatcher: _Dispatcher = JSONRPCDispatcher(received, sent)
                about = Implementation(name=self._options.name, version="1")
                async with ClientSession(
                    dispatcher=dispatcher, client_info=about, message_handler=self._on_message
                ) as session:
                    self._reason = await self._serve(session, dispatcher)
        except Unavailable as error:
            self._reason = str(error)
        except ExceptionGroup as group:
            # Raised by the tasks of a transport, for example over HTTP when the server cannot be reached.
            self._reason = f"the connection broke ({type(single_exception(group)).__name__})"

    def _streams(self) -> AbstractAsyncContextManager[mcp_stdio.Streams | mcp_http.Streams]:
        if isinstance(self._server, StdioTransport):
            return mcp_stdio.open_stdio(self._server, self._relist.set)
        return mcp_http.open_http(self._server)

    async def _serve(self, session: ClientSession, dispatcher: _Dispatcher) -> str:
        """Connect and keep the list of tools current; return the reason when this fails."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                version = str((await session.initialize()).protocol_version)
                if version < self._options.oldest:
                    return f"its MCP version {version} is too old"
                tools = await _list(dispatcher)
            log.info("MCP server connected", extra={"server": self.name, "tools": len(tools)})
            self._dispatcher = dispatcher
            while True:
                self.tools, listed = tools, self._clock()
                await self._wait(listed)
                async with asyncio.timeout(ASK_SECONDS):
                    tools = await _list(dispatcher)
        except TimeoutError:
            return "it did not answer in time"
        except MCPError as error:
            return f"it refused, or disconnected: {clip(error.message)[:_SHOWN]}"
        except (ValidationError, RuntimeError):
            return "its MCP version is not supported"
        except Unavailable as error:
            return str(error)
        finally:
            self._dispatcher, self.tools = None, ()

    async def _wait(self, listed: float) -> None:
        """Wait until the tools should be listed again: after `LOOK_SECONDS`, or when the server reports a change.

        A server that reports changes all the time is asked once in `_PAUSE_SECONDS`.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._relist.wait()
        await asyncio.sleep(listed + _PAUSE_SECONDS - self._clock())
        self._relist.clear()

    async def _on_message(self, message: ServerNotification | Exception) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._relist.set()


async def _list(dispatcher: _Dispatcher) -> tuple[RemoteTool, ...]:
    tools: dict[str, RemoteTool] = {}
    cursor: object = None
    for _ in range(_MOST_PAGES):
        answer = await dispatcher.send_raw_request("tools/list", {"cursor": cursor} if cursor else None)
        page = parse_page(answer)
        if page is None:
            raise Unavailable("its answer is not a list of tools")
        if page.damaged:
            log.warning("invalid tools of an MCP server left out", extra={"tools": page.damaged})
        safe = set(_read_only(answer["tools"]))
        tools |= {spec.name: RemoteTool(spec, spec.name in safe) for spec in page.tools}
        cursor = answer.get("nextCursor")
        if not isinstance(cursor, str) or not cursor or len(tools) >= MOST_TOOLS:
            break
    return tuple(tools.values())[:MOST_TOOLS]


def _read_only(entries: Sequence[object]) -> Iterator[object]:
    """Yield the names of the tools with `readOnlyHint`."""
    for entry in entries:
        if isinstance(entry, dict):
            hints = entry.get("annotations")
            if isinstance(hints, dict) and hints.get("readOnlyHint") is True:
                yield str(entry.get("name"))


def _result(answer: dict[str, Any]) -> ServerResult:
    text = parse_result(answer)
    structured = answer.get("structuredContent")
    if text.failed or not isinstance(structured, dict):
        return ServerResult(text.text or "the server says nothing about it", failed=text.failed)
    whole = json.dumps(structured, ensure_ascii=False)
    small = len(whole) <= LARGEST_RESULT and clip(whole) == whole
    return ServerResult(structured if small else text.text or clip(whole))


def _explain(error: MCPError) -> str:
    if error.code == CONNECTION_CLOSED:
        return "unknown whether it was done, the server went away"
    if error.code == mcp_stdio.TOO_LONG:
        return "done perhaps, but the server's answer is too large"
    return clip(error.message).strip() or f"the server answered with the error {error.code}"

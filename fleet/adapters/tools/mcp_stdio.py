"""MCP servers as child processes.

The SDK's own transport keeps a line of any length in memory, copies it with every piece, and logs every invalid line
whole. Here lines and log entries are bounded (docs/adr/0012-mcp-stdio.md). The standard error of a server is logged at
debug level.
"""

import asyncio
import logging
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from fleet.adapters.tools.mcp_config import StdioTransport
from fleet.adapters.tools.mcp_lines import LARGEST_MESSAGE, MESSAGE_COST, ByteRate, LineSplitter, OversizedLine
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import finish, running

log = logging.getLogger(__name__)

TOO_LONG = -32001
"""Code of the error that replaces an answer that is too long."""

_PIECE = 64 * 1024
_WAITING = 128
"""Messages that wait for a server that does not read; more than `MOST_CALLS`, so that no call has to wait."""
_END_SECONDS = 2.0
"""Pause between the steps that end a program: closed input, SIGTERM, SIGKILL."""
_LOGGED = 400

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_stdio(program: StdioTransport, on_end: Callable[[], None]) -> AsyncIterator[Streams]:
    """Run a server inside the block, and yield the streams to and from it.

    Args:
        program: The server. It gets only a few harmless variables of this process's environment, and its own ones.
        on_end: Called when the server has closed its output, as it does when it ends.

    Raises:
        Unavailable: The program cannot be run.
    """
    process = await _start(program)
    incoming, received = anyio.create_memory_object_stream[Incoming](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](_WAITING)
    async with AsyncExitStack() as stack:
        # The first releases of Python 3.11 cancel a second time here; without `finish` the program would not be ended.
        stack.push_async_callback(lambda: finish("end of an MCP server", _end(process)))
        for stream in (incoming, received, sent, outgoing):
            stack.callback(stream.close)
        await stack.enter_async_context(running("MCP server's output", lambda: _read(process, incoming, on_end)))
        await stack.enter_async_context(running("MCP server's input", lambda: _write(process, outgoing)))
        await stack.enter_async_context(running("MCP server's errors", lambda: _log_errors(process)))
        yield received, sent


async def _start(program: StdioTransport) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            program.command,
            *program.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=get_default_environment() | program.env,
            cwd=program.cwd,
            start_new_session=True,  # a process group of its own, so that its children can be ended with it
        )
    except (OSError, ValueError) as error:
        raise Unavailable(f"cannot be run: {error}") from error


async def _read(process: Process, incoming: MemoryObjectSendStream[Incoming], on_end: Callable[[], None]) -> None:
    output, lines, pace = process.stdout, LineSplitter(), ByteRate()
    assert output is not None, "it was started with a pipe"  # noqa: S101 - for the type checker
    try:
        while piece := await output.read(_PIECE):
            found = lines.feed(piece)
            await pace.take(max(len(piece), len(found) * MESSAGE_COST))
            for line in found:
                if (message := _parse(line)) is not None:
                    await incoming.send(message)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        log.debug("MCP session ended")
    except OSError as error:
        log.debug("output of an MCP server failed", extra={"reason": str(error)})
    incoming.close()
    on_end()


def _parse(line: bytes | OversizedLine) -> SessionMessage | None:
    if isinstance(line, OversizedLine):
        log.warning("message of an MCP server dropped", extra={"reason": f"longer than {LARGEST_MESSAGE} bytes"})
        if line.answers is None:
            return None
        error = ErrorData(code=TOO_LONG, message="the answer is too large")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=line.answers, error=error))
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        log.debug("MCP server wrote an invalid line", extra={"pii": line[:_LOGGED].decode("utf-8", "replace")})
        return None


async def _write(process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    pipe = process.stdin
    assert pipe is not None, "it was started with a pipe"  # noqa: S101 - for the type checker
    try:
        async for item in outgoing:
            pipe.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await pipe.drain()
    except (OSError, RuntimeError) as error:
        # The session ends through `_read`: the server has closed its output too.
        log.debug("input of an MCP server failed", extra={"reason": str(error) or type(error).__name__})
    outgoing.close()


async def _log_errors(process: Process) -> None:
    errors, pace = process.stderr, ByteRate()
    assert errors is not None, "it was started with a pipe"  # noqa: S101 - for the type checker
    with suppress(OSError):
        while piece := await errors.read(_PIECE):
            await pace.take(len(piece))
            log.debug(
                "standard error of an MCP server", extra={"pii": piece[:_LOGGED].decode("utf-8", "replace").strip()}
            )


async def _end(process: Process) -> None:
    """End a program and its children: close its input, then send signals (MCP specification, lifecycle)."""
    if process.stdin is not None:
        process.stdin.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        await _ended(process)
        if not _signal(process, number):
            break
    if not await _ended(process):
        log.warning("MCP server does not end", extra={"pid": process.pid})
    # asyncio has no public way to close the pipes of a process whose output is not read to its end.
    close = getattr(getattr(process, "_transport", None), "close", None)
    if callable(close):
        close()
        await asyncio.sleep(0)


def _signal(process: Process, number: signal.Signals) -> bool:
    """Send a signal to a program and its children; return whether any of them was still running."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return process.returncode is None
    return True


async def _ended(process: Process) -> bool:
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        return process.returncode is not None
    return True

"""MCP servers over streamable HTTP: the SDK's transport, with bounds on the size and the rate of answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from fleet.adapters.http_client import BoundedClient
from fleet.adapters.tools.mcp_config import HttpTransport
from fleet.adapters.tools.mcp_lines import LARGEST_MESSAGE, MESSAGE_COST, ByteRate

_EVENTS = "text/event-stream"
_CONNECT_SECONDS = 5.0
_READ_SECONDS = 300.0
"""Longest silence on a stream of events; after it the SDK reconnects."""

_END_SECONDS = 5.0
"""Longest wait for the answer to the end of a session: a server that hangs delays no new connection."""

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


@asynccontextmanager
async def open_http(address: HttpTransport) -> AsyncIterator[Streams]:
    """Yield the streams to and from a server. If it cannot be reached, the first request fails."""
    pace = ByteRate()

    async def slow_down(piece: bytes) -> None:
        await pace.take(max(len(piece), piece.count(b"data:") * MESSAGE_COST))

    async with (
        BoundedClient(
            _largest,
            None,
            on_piece=slow_down,
            headers=address.headers,
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_READ_SECONDS),
            event_hooks={"request": [_limit_end]},
        ) as client,
        streamable_http_client(address.url, http_client=client, max_sse_event_size=LARGEST_MESSAGE) as streams,
    ):
        yield streams


async def _limit_end(request: httpx2.Request) -> None:
    if request.method == "DELETE":
        request.extensions = {**request.extensions, "timeout": httpx2.Timeout(_END_SECONDS).as_dict()}


def _largest(response: httpx2.Response) -> int | None:
    """Return the bound of a body; None for a stream of events, because the SDK bounds each event."""
    return None if response.headers.get("content-type", "").startswith(_EVENTS) else LARGEST_MESSAGE

"""MCP servers over streamable HTTP: the SDK's transport, with answers bounded in size and in pace."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from fleet.adapters.http_bounds import LARGEST_ERROR
from fleet.adapters.tools.mcp_config import Address
from fleet.adapters.tools.mcp_lines import LARGEST_MESSAGE, MESSAGE_COST, LinePace

_EVENTS = "text/event-stream"
_CONNECT_SECONDS = 5.0
_READ_SECONDS = 300.0
"""Longest silence on a stream of events; the SDK opens it anew."""

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


@asynccontextmanager
async def open_address(address: Address) -> AsyncIterator[Streams]:
    """Give the streams to and from a server; that it cannot be reached is the answer to the first request."""
    pace = LinePace()

    async def bound(response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            # Of a packed body nobody knows how large it is.
            raise httpx2.DecodingError("the answer is packed", request=response.request)
        events = response.headers.get("content-type", "").startswith(_EVENTS)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            most = LARGEST_MESSAGE if response.is_success else LARGEST_ERROR
            response.stream = _Bounded(response.stream, pace, None if events and response.is_success else most)

    async with (
        httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **address.headers},
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_READ_SECONDS),
            event_hooks={"response": [bound]},
            # The SDK asks for this, and not for `follow_redirects`.
            max_redirects=0,
        ) as client,
        streamable_http_client(address.url, http_client=client, max_sse_event_size=LARGEST_MESSAGE) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncByteStream):
    """A body that breaks off when it is too long.

    Args:
        stream: The body.
        pace: Of its server.
        most: Bytes; None for a stream of events, whose single events the SDK bounds.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, pace: LinePace, most: int | None) -> None:
        self._stream = stream
        self._pace = pace
        self._most = most

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if self._most is not None and size > self._most:
                raise httpx2.StreamError("the answer is too large")
            await self._pace.take(max(len(piece), piece.count(b"data:") * MESSAGE_COST))
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

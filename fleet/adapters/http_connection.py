"""One client connection of HTTP/1.1: a request, its answer piece by piece, then the next request.

httptools parses. What it does not bound is bounded here: bytes without progress of the body (endless heads, trailers,
chunk extensions), bytes that wait for the reader, and data that nobody has asked for.
"""

import asyncio
from enum import Enum
from typing import Any, Final

import httptools
import httpx2

LARGEST_HEAD: Final = 100 * 1024
"""Bytes that may come without a byte of the body."""
MOST_UNREAD: Final = 256 * 1024
"""Bytes of the body beyond which reading pauses until they are read."""


class _Stage(Enum):
    IDLE = 0
    HEAD = 1
    BODY = 2
    DONE = 3
    """The answer is complete, and the next request may follow."""
    LAST = 4
    """The answer is complete, and the connection ends."""


class _AnswerParser:
    """The answers of one connection. `on_…` are what httptools calls."""

    def __init__(self) -> None:
        self.stage = _Stage.IDLE
        self.status = 0
        self.headers: dict[str, str] = {}
        self.unread = bytearray()
        """Of the body. Not a list of pieces: of chunks of one byte each would take fifty times its size."""
        self.silent = 0
        # Untyped: httptools has no types for its callbacks.
        self._parser: Any = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Take bytes of the answer.

        Raises:
            httpx2.RemoteProtocolError: It is no HTTP, or never comes to its body.
        """
        self.silent += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise httpx2.RemoteProtocolError(f"not HTTP: {error}") from None
        if self.silent > LARGEST_HEAD:
            raise httpx2.RemoteProtocolError("the answer's head is too large")

    def close(self, *, cleanly: bool) -> None:
        """Note that no more bytes come: the end of a body without a length."""
        framed = "content-length" in self.headers or "transfer-encoding" in self.headers
        if self.stage is _Stage.BODY and cleanly and not framed:
            self.stage = _Stage.LAST
        self._parser = None  # it refers to this object

    def on_message_begin(self) -> None:
        if self.stage is _Stage.DONE:
            # A second answer to one request.
            self.stage = _Stage.LAST

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.stage is _Stage.HEAD:
            self.headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        if self.stage is _Stage.HEAD:
            self.status = self._parser.get_status_code()
            if self.status >= 200:
                self.stage = _Stage.BODY

    def on_body(self, body: bytes) -> None:
        if self.stage is _Stage.BODY:
            self.silent = 0
            self.unread += body

    def on_message_complete(self) -> None:
        if self.stage is _Stage.HEAD:
            # 100 Continue, 103 Early Hints: the answer follows.
            self.headers = {}
        elif self.stage is _Stage.BODY:
            self.silent = 0
            self.stage = _Stage.DONE if self._parser.should_keep_alive() else _Stage.LAST


class HttpConnection(asyncio.Protocol):
    """A connection that carries one request at a time. Only the last answer's `status` and `headers` are valid."""

    def __init__(self) -> None:
        self._answer = _AnswerParser()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._tcp: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._fault: httpx2.TransportError | None = None

    @property
    def status(self) -> int:
        """Of the answer."""
        return self._answer.status

    @property
    def headers(self) -> dict[str, str]:
        """Of the answer, by names in lower case; of several with one name the first."""
        return self._answer.headers

    @property
    def alive(self) -> bool:
        """Whether a request can be sent."""
        return self._answer.stage is _Stage.IDLE and self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> None:
        """Send a request and return when its answer's head is there.

        Raises:
            httpx2.TransportError: The connection broke, or the answer is no HTTP.
        """
        if self._transport is None or not self.alive:
            raise httpx2.WriteError("the connection is closed")
        answer = self._answer
        answer.stage, answer.silent, answer.headers = _Stage.HEAD, 0, {}
        self._transport.write(request)
        while answer.stage is _Stage.HEAD:
            await self._wait(None)

    async def read(self, until: float) -> bytes:
        """Return the next bytes of the body; b"" at its end.

        Args:
            until: When they must be there, on the loop's clock.

        Raises:
            TimeoutError: They are not.
            httpx2.TransportError: The connection broke before the end.
        """
        answer = self._answer
        while not answer.unread:
            if answer.stage in (_Stage.DONE, _Stage.LAST):
                return b""
            await self._wait(until)
        data = bytes(answer.unread)
        answer.unread.clear()
        if len(data) > MOST_UNREAD and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        return data

    def rest(self) -> bool:
        """Prepare for the next request; return whether there can be one."""
        if self._answer.stage is not _Stage.DONE or self._answer.unread:
            return False
        self._answer.stage = _Stage.IDLE
        # An answer may come before the request is sent completely. TLS does not count what waits in TCP.
        layers = (self._transport, self._tcp)
        return self.alive and not any(layer.get_write_buffer_size() for layer in layers if layer)

    def abort(self) -> None:
        """End the connection at once."""
        # With TLS, Python 3.11.2's transport cannot be aborted once it is closed.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.abort()

    def encrypt(self, transport: asyncio.Transport) -> None:
        """Use TLS from now on: `transport` is what `loop.start_tls` returned."""
        self._transport = transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # what TCP and TLS have
        self._transport = self._tcp = transport

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer.stage not in (_Stage.HEAD, _Stage.BODY):
            self.abort()
            return
        try:
            answer.feed(data)
        except httpx2.RemoteProtocolError as error:
            self._fault = self._fault or error
            self.abort()
        if len(answer.unread) > MOST_UNREAD and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._answer.close(cleanly=exc is None and self._fault is None)
        self._fault = self._fault or httpx2.ReadError(str(exc) if exc else "the server closed the connection")
        self._transport = self._tcp = None
        self._wake()

    async def _wait(self, until: float | None) -> None:
        if self._fault is not None:
            raise self._fault
        self._waiter = waiter = self._loop.create_future()
        timer = None if until is None else self._loop.call_at(until, _expire, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _expire(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())

"""HTTP clients that keep no more of an answer than a bound, whatever the server sends.

Of an answer that is no success 64 KB are read and the connection is closed: its text is only for the log. A success
that is too large is a failure. Packed bodies are not unpacked, for nobody knows how large they become; servers are
asked not to pack.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import httpx2

LARGEST_ERROR = 64 * 1024
"""Bytes that are read of an answer that is no success."""
ERROR_SECONDS = 5.0
"""How long such an answer is read."""
_PLAIN = "identity"
_LONGEST_SHOWN = 200
_STREAMED = "stream"

Hook = Callable[[httpx2.Response], Awaitable[None]]


class AnswerTooLarge(httpx2.ReadError):
    """The body of a success is larger than the bound, or packed."""


def bounded_client(largest: int, **options: Any) -> httpx2.AsyncClient:
    """Return a client whose answers are bounded.

    Args:
        largest: Bytes of the body of a success.
        options: Of `httpx2.AsyncClient`, besides its hooks.
    """
    headers = {"Accept-Encoding": _PLAIN, **options.pop("headers", {})}
    return httpx2.AsyncClient(headers=headers, event_hooks=bounding(largest), follow_redirects=False, **options)


def told_redirect(response: httpx2.Response) -> str:
    """Return how an answer is told that sends us elsewhere, empty for every other one.

    Nobody is asked there: what we send is meant for whom the operator has named.
    """
    if not response.has_redirect_location:
        return ""
    try:
        place = response.request.url.join(response.headers["location"])
        shown = f"{place.scheme}://{place.netloc.rpartition(b'@')[2].decode('ascii')}{place.path}"
    except (httpx2.InvalidURL, ValueError):
        shown = "nowhere"
    return f"answers with a redirect to {shown[:_LONGEST_SHOWN]}; set the final address"


def bounding(largest: int) -> dict[str, list[Hook]]:
    """Return the hooks that bound a client's answers; bodies that the OpenAI library streams its caller bounds."""

    async def bound(response: httpx2.Response) -> None:
        succeeded = response.is_success
        if response.headers.get("content-encoding", _PLAIN).strip().lower() != _PLAIN:
            if succeeded:
                raise AnswerTooLarge("the answer is packed", request=response.request)
            # Nobody can read it; without this the library would try.
            del response.headers["content-encoding"]
            response.stream = _Bounded(response, 0)
        elif not succeeded:
            response.stream = _Bounded(response, LARGEST_ERROR)
        elif response.request.headers.get("x-stainless-raw-response") != _STREAMED:
            response.stream = _Bounded(response, largest)

    return {"response": [bound]}


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends, or fails where it is a success, when it is too long."""

    def __init__(self, response: httpx2.Response, most: int) -> None:
        if not isinstance(response.stream, httpx2.AsyncByteStream):
            raise TypeError("only answers to asynchronous clients are bounded")
        self._stream = response.stream
        self._request = response.request
        self._succeeded = response.is_success
        self._left = most

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        pieces = aiter(self._stream)
        until = None if self._succeeded else asyncio.get_running_loop().time() + ERROR_SECONDS
        while piece := await self._next(pieces, until):
            if len(piece) > self._left and self._succeeded:
                raise AnswerTooLarge("the answer is too large", request=self._request)
            yield piece[: self._left]
            self._left -= len(piece)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _next(self, pieces: Any, until: float | None) -> bytes:
        """Return the next piece, empty at the end and when an answer that is no success was read for long enough."""
        if self._left <= 0 and not self._succeeded:
            return b""
        try:
            async with asyncio.timeout_at(until):
                async for piece in pieces:
                    if piece:
                        return bytes(piece)
        except TimeoutError:
            return b""
        return b""

"""The HTTP client of all adapters but models (ADR 33): memory, time and destination of every request are bounded.

- Body: a success that is longer than the bound fails. Of any other answer 64 KB are read within five seconds, for the
  log. The HTTP library bounds the headers (100 KB).
- Time: `seconds` bounds a request from its beginning to the last byte of its answer.
- Destination: redirects are not followed, because the request is meant for the server that the operator has named.
- Compression: requests ask for no compression. A compressed success fails unread, because its full size is unknown.

Ruff refuses every other HTTP client (`banned-api` in pyproject.toml).
"""

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.request import getproxies

import httpx2

from fleet.ground.errors import ConfigError

LARGEST_ERROR = 64 * 1024
"""Bytes that are read of an answer that is no success."""
ERROR_SECONDS = 5.0
"""Seconds to read such an answer."""
_PLAIN = "identity"
_LONGEST_SHOWN = 200
_LAST_PORT = 65_535
_PROXIES = "a proxy of the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY)"

Bound = Callable[[httpx2.Response], int | None]
"""Returns the largest body of a success in bytes; None for a stream whose reader bounds each part."""
OnPiece = Callable[[bytes], Awaitable[None]]


class AnswerTooLarge(httpx2.ReadError, httpx2.StreamError):
    """The body of a success is larger than the bound, or compressed."""


class BoundedClient(httpx2.AsyncClient):
    """A client whose answers are bounded.

    Args:
        largest: Bytes of the body of a success.
        seconds: Longest time of a request; None if the caller bounds each step.
        on_piece: Awaited with each piece of a body before it is passed on.
        options: Of `httpx2.AsyncClient`.

    Raises:
        ConfigError: A proxy of the environment cannot be used.
    """

    def __init__(
        self, largest: int | Bound, seconds: float | None, *, on_piece: OnPiece | None = None, **options: Any
    ) -> None:
        headers = {"Accept-Encoding": _PLAIN, **options.pop("headers", {})}
        timeout = options.pop("timeout", seconds)
        options.setdefault("verify", public_trust(trust_env=options.get("trust_env", True)))
        try:
            # `max_redirects` for callers that ask to follow them.
            super().__init__(headers=headers, timeout=timeout, follow_redirects=False, max_redirects=0, **options)
            if options.get("trust_env", True):
                _check_ports(getproxies())
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            # Not its text: that may show the proxy's password.
            raise ConfigError(f"{_PROXIES} is not http://host:port ({type(error).__name__})") from None
        self._largest = largest
        self._seconds = seconds
        self._on_piece = on_piece

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request; see `httpx2.AsyncClient.send`.

        Raises:
            httpx2.ReadTimeout: The request took longer than `seconds`.
            AnswerTooLarge: The answer is larger than the bound.
        """
        until = None if self._seconds is None else asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(until), AsyncExitStack() as stack:
                response = await super().send(request, stream=True, **options)
                stack.push_async_callback(response.aclose)
                self._bound(response, until)
                if not stream:
                    await response.aread()
                stack.pop_all()
        except TimeoutError:
            raise httpx2.ReadTimeout("the answer took too long", request=request) from None
        return response

    def _bound(self, response: httpx2.Response, until: float | None) -> None:
        succeeded = response.is_success
        if response.headers.get("content-encoding", _PLAIN).strip().lower() != _PLAIN:
            if succeeded:
                raise AnswerTooLarge("the answer is packed", request=response.request)
            # Without this the library would decompress the body.
            del response.headers["content-encoding"]
            response.stream = _Body(response, 0, until, None)
            return
        most = self._most(response) if succeeded else LARGEST_ERROR
        response.stream = _Body(response, most, until, self._on_piece)

    def _most(self, response: httpx2.Response) -> int | None:
        return self._largest(response) if callable(self._largest) else self._largest


def describe_redirect(response: httpx2.Response) -> str:
    """Return the message for an answer that is a redirect, empty for every other answer."""
    if not response.has_redirect_location:
        return ""
    try:
        place = response.request.url.join(response.headers["location"])
        shown = f"{place.scheme}://{place.netloc.rpartition(b'@')[2].decode('ascii')}{place.path}"
    except (httpx2.InvalidURL, ValueError):
        shown = "nowhere"
    return f"answers with a redirect to {shown[:_LONGEST_SHOWN]}; set the final address"


def _check_ports(proxies: dict[str, str]) -> None:
    for scheme in ("http", "https", "all"):
        place = proxies.get(scheme, "")
        if (httpx2.URL(place if "://" in place else f"http://{place}").port or 0) > _LAST_PORT:
            raise ValueError(scheme)


@functools.cache
def public_trust(*, trust_env: bool) -> ssl.SSLContext:
    """Return the TLS context with the system's authorities, the same one each time: loading takes 30 ms of a core.

    Args:
        trust_env: Whether SSL_CERT_FILE and SSL_CERT_DIR may name others.
    """
    return httpx2.create_ssl_context(trust_env=trust_env)


class _Body(httpx2.AsyncByteStream):
    """A body with bounds in size and time: beyond them a success fails, any other answer is cut."""

    def __init__(
        self, response: httpx2.Response, most: int | None, until: float | None, on_piece: OnPiece | None
    ) -> None:
        if not isinstance(response.stream, httpx2.AsyncByteStream):
            raise TypeError("only answers to asynchronous clients are bounded")
        self._stream = response.stream
        self._request = response.request
        self._succeeded = response.is_success
        self._left = most
        self._until = until
        self._on_piece = on_piece

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        pieces = aiter(self._stream)
        until = self._until
        if not self._succeeded:
            soon = asyncio.get_running_loop().time() + ERROR_SECONDS
            until = soon if until is None else min(soon, until)
        while piece := await self._next(pieces, until):
            if self._left is not None:
                if len(piece) > self._left and self._succeeded:
                    raise AnswerTooLarge("the answer is too large", request=self._request)
                piece = piece[: self._left]
                self._left -= len(piece)
            if self._on_piece is not None:
                await self._on_piece(piece)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _next(self, pieces: Any, until: float | None) -> bytes:
        """Return the next piece; empty at the end, or when the bound of an answer other than a success is reached."""
        if self._left is not None and self._left <= 0 and not self._succeeded:
            return b""
        try:
            async with asyncio.timeout_at(until):
                async for piece in pieces:
                    if piece:
                        return bytes(piece)
        except TimeoutError:
            if self._succeeded:
                raise httpx2.ReadTimeout("the answer took too long", request=self._request) from None
        return b""

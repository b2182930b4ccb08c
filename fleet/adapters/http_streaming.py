"""A lean HTTP/1.1 client of one server, for streamed answers: a twentieth of the CPU time of httpx2 (ADR 33).

Behind a proxy httpx2 does the work, because tunnels and their logins are no place for code of our own.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol
from urllib.request import getproxies, proxy_bypass  # noqa: TID251 - they read the environment

import httpx2
from aiohappyeyeballs import start_connection

from fleet.adapters.http_client import BoundedClient, public_trust
from fleet.adapters.http_connection import HttpConnection

MOST_CONNECTIONS: Final = 1_000
MOST_KEPT: Final = 100
"""Connections that stay open between requests."""
KEPT_SECONDS: Final = 55.0
"""Turns are seconds apart: with the libraries' default of five seconds each one would need a new TLS handshake."""

_OTHER_FAMILY_SECONDS: Final = 0.25
"""After which IPv4 is tried beside IPv6 (RFC 8305)."""
_FORBIDDEN: Final = re.compile(r"[^\t\x20-\x7e\x80-\xff]")


class HttpAnswer(Protocol):
    """An answer whose head is there."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """By names in lower case; values are latin-1, as their bytes were."""

    async def read(self, until: float) -> bytes:
        """Return the next bytes of the body, b"" at its end; see `HttpConnection.read`."""


class HttpStreams(Protocol):
    """Sends requests to one server. No time is bounded here."""

    def ask(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> AbstractAsyncContextManager[HttpAnswer]:
        """Send a request and yield its answer; at the block's end a connection whose answer was read to its end stays.

        Args:
            method: Of HTTP.
            target: Path and query, encoded.
            headers: Beside Host and Content-Length.
            content: The body.

        Raises:
            httpx2.TransportError: The server cannot be reached, or the connection broke.
        """

    async def aclose(self) -> None: ...


def open_streams(url: httpx2.URL, largest: int) -> HttpStreams:
    """Return a client for the server of `url`.

    Args:
        url: Its scheme, host and port count.
        largest: Bytes of a success that are read behind a proxy; without one the reader bounds them.

    Raises:
        ConfigError: The proxy cannot be used.
    """
    proxies = getproxies()
    if (url.scheme in proxies or "all" in proxies) and not proxy_bypass(_host(url)):
        return _ProxiedStreams(url, largest)
    return DirectStreams(url)


class DirectStreams:
    """Sends requests over connections that it keeps.

    Args:
        url: Its scheme, host and port count.
        trust: Of TLS; None for the system's authorities.
    """

    def __init__(self, url: httpx2.URL, trust: ssl.SSLContext | None = None) -> None:
        self._host = url.raw_host.decode("ascii")
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._trust = (trust or public_trust(trust_env=True)) if url.scheme == "https" else None
        self._head = f" HTTP/1.1\r\nHost: {_host(url)}\r\n"
        self._places = asyncio.Semaphore(MOST_CONNECTIONS)
        self._kept: dict[HttpConnection, asyncio.TimerHandle] = {}

    @asynccontextmanager
    async def ask(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> AsyncGenerator[HttpConnection, None]:
        """See `HttpStreams.ask`."""
        request = self._write(method, target, headers, content)
        async with self._places:
            connection = self._take() or await self._connect()
            try:
                await connection.ask(request)
                yield connection
            finally:
                self._keep(connection)

    async def aclose(self) -> None:
        """Close the kept connections."""
        for connection, timer in self._kept.items():
            timer.cancel()
            connection.abort()
        self._kept.clear()

    def _write(self, method: str, target: str, headers: Mapping[str, str], content: bytes) -> bytes:
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if _FORBIDDEN.search(lines.replace("\r\n", "", len(headers))):
            raise httpx2.LocalProtocolError("a header has characters that none may have")
        head = f"{method} {target}{self._head}{lines}Content-Length: {len(content)}\r\n\r\n"
        return head.encode("latin-1") + content

    def _take(self) -> HttpConnection | None:
        while self._kept:
            connection, timer = self._kept.popitem()
            timer.cancel()
            if connection.alive:
                return connection
        return None

    def _keep(self, connection: HttpConnection) -> None:
        if connection.rest() and len(self._kept) < MOST_KEPT:
            loop = asyncio.get_running_loop()
            self._kept[connection] = loop.call_later(KEPT_SECONDS, self._expire, connection)
        else:
            connection.abort()

    def _expire(self, connection: HttpConnection) -> None:
        del self._kept[connection]
        connection.abort()

    async def _connect(self) -> HttpConnection:
        loop = asyncio.get_running_loop()
        try:
            places = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            plain = await start_connection(places, happy_eyeballs_delay=_OTHER_FAMILY_SECONDS)
            tcp, connection = await loop.create_connection(HttpConnection, sock=plain)
            if self._trust and (tls := await loop.start_tls(tcp, connection, self._trust, server_hostname=self._host)):
                connection.encrypt(tls)
        except (OSError, ValueError) as error:
            # ValueError: a name that the resolver or TLS cannot encode.
            raise httpx2.ConnectError(str(error)) from error
        return connection


class _ProxiedStreams:
    """Sends requests through the proxy that the environment names."""

    def __init__(self, url: httpx2.URL, largest: int) -> None:
        self._url = url
        self._largest = largest
        limits = httpx2.Limits(
            max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_KEPT, keepalive_expiry=KEPT_SECONDS
        )
        self._client = BoundedClient(largest, None, limits=limits)

    @asynccontextmanager
    async def ask(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> AsyncGenerator["_ProxiedAnswer", None]:
        url = self._url.copy_with(raw_path=target.encode("ascii"))
        request = self._client.build_request(method, url, headers=dict(headers), content=content)
        response = await self._client.send(request, stream=True)
        try:
            yield _ProxiedAnswer(response)
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()


class _ProxiedAnswer:
    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        pairs = reversed(response.headers.raw)  # of several with one name the first counts
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}
        self._pieces = response.aiter_raw()

    async def read(self, until: float) -> bytes:
        async with asyncio.timeout_at(until):
            return await anext(self._pieces, b"")


def _host(url: httpx2.URL) -> str:
    return url.netloc.decode("ascii").rpartition("@")[2]

"""A GET as firmware's notify_player.cc makes it: read in small pieces, so that TCP slows the server down."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from urllib.parse import urlsplit

from fleet.workbench.sim.network.https import trust

WINDOW = 4096
"""Bytes that lwIP and firmware's HTTP queue hold of an answer that nobody reads."""
PIECE = 1024
"""Bytes of one read."""
_SECONDS = 5.0
_LONGEST_HEAD = 8192


class HttpError(Exception):
    """An answer that firmware gives up on."""


class SlowBody:
    """The body of an answer; the rest of it stays with the server until it is asked for.

    Args:
        reader: After the head.
        length: Bytes of the body; None if it comes in chunks.
    """

    def __init__(self, reader: asyncio.StreamReader, length: int | None) -> None:
        self._reader, self._left, self._chunked = reader, length or 0, length is None

    async def read(self) -> bytes:
        """Return the next piece; empty at the end.

        Raises:
            HttpError: The connection ended before the body.
            TimeoutError: Nothing came for five seconds.
        """
        async with asyncio.timeout(_SECONDS):
            try:
                if self._chunked and not self._left:
                    self._left = int((await self._reader.readline()).strip() or b"0", 16)
                if not self._left:
                    return b""
                piece = await self._reader.read(min(PIECE, self._left))
                self._left -= len(piece)
                if self._chunked and piece and not self._left:
                    await self._reader.readline()
            except ValueError as error:
                raise HttpError("bad chunk") from error
        if not piece:
            raise HttpError("the connection ended early")
        return piece


@asynccontextmanager
async def slow_get(url: str, window: int = WINDOW) -> AsyncIterator[SlowBody]:
    """Ask for a URL, and yield the body of the answer; the connection is closed after the block.

    Args:
        url: `http://` or `https://`.
        window: Bytes that are taken without being read.

    Raises:
        HttpError: Another status than 2xx; redirects are not followed. Or a head that is none.
        OSError: No connection.
        TimeoutError: No answer for five seconds.
        ValueError: No such URL.
    """
    parts = urlsplit(url)
    host, tls = parts.hostname or "", parts.scheme == "https"
    async with asyncio.timeout(_SECONDS):
        reader, writer = await _connect(host, parts.port or (443 if tls else 80), window, tls=tls)
    try:
        async with asyncio.timeout(_SECONDS):
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            head = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: audio/ogg, application/ogg\r\n"
            writer.write(f"{head}Accept-Encoding: identity\r\n\r\n".encode())
            length = await _read_head(reader)
        yield SlowBody(reader, length)
    finally:
        writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                await writer.wait_closed()


async def _connect(
    host: str, port: int, window: int, *, tls: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    (family, kind, _, _, address), *_ = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    with ExitStack() as unless_open:
        sock = unless_open.enter_context(socket.socket(family, kind))
        sock.setblocking(False)
        # Linux doubles it for its own overhead.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window // 2)
        await loop.sock_connect(sock, address)
        context, name = (trust(), host) if tls else (None, None)
        opened = await asyncio.open_connection(sock=sock, limit=PIECE, ssl=context, server_hostname=name)
        unless_open.pop_all()
    return opened


async def _read_head(reader: asyncio.StreamReader) -> int | None:
    """Return the length of the body, None if it comes in chunks."""
    first, read, length, chunked = (await reader.readline()).split(maxsplit=2), 0, 0, False
    if len(first) < 2 or not first[1].isdigit():
        raise HttpError("no HTTP")
    while line := (await reader.readline()).strip():
        read += len(line)
        name, _, value = line.partition(b":")
        if read > _LONGEST_HEAD:
            raise HttpError("a head of more than 8 KB")
        if name.lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
        chunked |= name.lower() == b"transfer-encoding" and b"chunked" in value.lower()
    if not 200 <= int(first[1]) < 300:
        raise HttpError(f"status {int(first[1])}")
    return None if chunked else length

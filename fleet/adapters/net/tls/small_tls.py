"""TLS connections that hold little, for servers that strangers reach.

uvloop gives each TLS connection a buffer of 256 KiB, and reads as much again ahead of an application that has paused
reading: a client could so take 1 MB. The protocol of Python's library is as generous, but its sizes can be set, and all
connections of a server can share its buffer (docs/adr/0059).
"""

import asyncio
import socket
import ssl
from asyncio.sslproto import SSLProtocol, SSLProtocolState
from collections.abc import Callable
from typing import Any

from fleet.adapters.net.tls.listener import SHUTDOWN_SECONDS, TlsAcceptor

READ_AT_ONCE = 16 * 1024
"""Bytes that are read and decrypted at once, and so what a connection holds that the application has not taken."""
_WRITE_AHEAD = 64 * 1024
"""Bytes of an answer that wait for the client, at which the application is to pause; as without TLS."""
WITHOUT_DATA = 48 * 1024
"""Bytes after the handshake that may bring nothing to the application; the largest record has 17 KB. Others are
messages of TLS alone: OpenSSL takes new keys without end, and 27 bytes of them cost it 10 µs."""


class SmallTls(SSLProtocol):
    """TLS of one connection.

    Args:
        arguments: As of the parent.
        buffer: Of `READ_AT_ONCE` bytes; may be shared, as what was read into it is copied at once.
        options: As of the parent.
    """

    max_size = READ_AT_ONCE

    # Of the parent, but not in its stubs.
    _incoming: ssl.MemoryBIO
    _sslobj: ssl.SSLObject
    _app_protocol: asyncio.Protocol
    _state: SSLProtocolState
    _transport: asyncio.Transport
    _call_eof_received: Callable[[], None]
    _set_read_buffer_limits: Callable[..., None]
    _set_write_buffer_limits: Callable[..., None]

    def __init__(self, *arguments: Any, buffer: bytearray, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._without_data = 0
        self._ssl_buffer, self._ssl_buffer_view = buffer, memoryview(buffer)
        self._set_read_buffer_limits(high=1)  # Whatever waits for the application is enough to read no more.
        self._set_write_buffer_limits(high=_WRITE_AHEAD)

    def buffer_updated(self, nbytes: int) -> None:
        if self._state is SSLProtocolState.WRAPPED:
            self._without_data += nbytes
            if self._without_data > WITHOUT_DATA:
                self._transport.abort()
                return
        super().buffer_updated(nbytes)

    def _do_read__copied(self) -> None:
        """Pass on what there is; unlike the parent's, it does not find the end by an exception, which costs CPU."""
        pieces, piece = [], b" "
        try:
            while piece and (self._incoming.pending or self._sslobj.pending()):
                piece = self._sslobj.read(READ_AT_ONCE)
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass  # the rest of a record is still to come
        if data := b"".join(pieces):
            self._without_data = 0
            self._app_protocol.data_received(data)
        if not piece:
            self._call_eof_received()
            self._start_shutdown()


class SmallTlsAcceptor(TlsAcceptor):
    """Accepts TLS connections that hold little; see `TlsAcceptor`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._buffer = bytearray(READ_AT_ONCE)

    async def _shake_hands(self, connection: socket.socket, protocol: asyncio.Protocol) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        tls = SmallTls(
            loop,
            protocol,
            self._context,
            done,
            server_side=True,
            ssl_handshake_timeout=self._seconds,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            buffer=self._buffer,
        )
        transport, _ = await loop.connect_accepted_socket(lambda: tls, connection)
        try:
            await done
        except asyncio.CancelledError:  # all else has closed it
            transport.abort()
            raise

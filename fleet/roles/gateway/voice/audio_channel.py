"""The UDP end of a session as the device has it: seals what it says, and opens what it hears."""

import asyncio
from collections.abc import Callable
from typing import cast

from fleet.wire.packet import HEADER, LARGEST, UPLINK_FLAGS, Channel, parse
from fleet.wire.voice_websocket import Welcome


class AudioChannel(asyncio.DatagramProtocol):
    """One session's audio; `open` makes it.

    Args:
        welcome: Has the key and the nonce.
        hear: Takes each packet of the server, in order; late ones are dropped, as firmware does.
    """

    def __init__(self, welcome: Welcome, hear: Callable[[bytes], None]) -> None:
        self._channel = Channel(welcome.key, int.from_bytes(welcome.nonce[4:8], "big"), UPLINK_FLAGS)
        self._hear = hear
        self._sent = self._last = 0
        self._transport: asyncio.DatagramTransport | None = None

    @classmethod
    async def open(cls, welcome: Welcome, hear: Callable[[bytes], None]) -> "AudioChannel":
        """Connect a socket to the edge that the server named.

        Raises:
            OSError: The host is unknown, or there is no way to it.
        """
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_datagram_endpoint(
            lambda: cls(welcome, hear), remote_addr=(welcome.host, welcome.port)
        )
        return channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: object) -> None:
        header = parse(data)
        if header is None or header.sequence <= self._last:
            return
        self._last = header.sequence
        self._hear(self._channel.open(data))

    def error_received(self, exc: Exception) -> None:
        """Do nothing: the edge may be gone for a moment, and its shard ends the session if it stays away."""

    def send(self, packet: bytes) -> bool:
        """Send an Opus packet; return False for one that no datagram holds."""
        if self._transport is None or not 0 < len(packet) <= LARGEST - HEADER:
            return False
        self._sent += 1
        self._transport.sendto(self._channel.seal(packet, 0, self._sent))
        return True

    def close(self) -> None:
        if self._transport:
            self._transport.close()

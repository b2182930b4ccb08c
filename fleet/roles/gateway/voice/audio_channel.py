"""The UDP end of a session as the device has it: seals what it says, and opens what it hears."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from fleet.adapters.speech.opus import Decoder, Encoder, OpusError
from fleet.wire.packet import HEADER, LARGEST, UPLINK_FLAGS, Channel, parse
from fleet.wire.voice_websocket import PCM_FRAME_MS, PCM_RATE, Sound, Welcome


class AudioChannel(asyncio.DatagramProtocol):
    """One session's audio; `open` makes it.

    Args:
        welcome: Has the key and the nonce.
        sound: What the client's audio frames are; PCM is encoded and decoded here.
        on_frame: Takes each audio frame of the server, in order; late ones are dropped, as firmware does.
    """

    def __init__(self, welcome: Welcome, sound: Sound, on_frame: Callable[[bytes], None]) -> None:
        pcm = sound == "pcm"
        self._encoder = Encoder(PCM_RATE, PCM_FRAME_MS, application="voip") if pcm else None
        self._decoder = Decoder(welcome.rate) if pcm else None
        self._channel = Channel(welcome.key, int.from_bytes(welcome.nonce[4:8], "big"), UPLINK_FLAGS)
        self._on_frame = on_frame
        self._sent = self._last = 0
        self._transport: asyncio.DatagramTransport | None = None

    @classmethod
    async def open(cls, welcome: Welcome, sound: Sound, on_frame: Callable[[bytes], None]) -> "AudioChannel":
        """Connect a socket to the edge that the server named.

        Raises:
            OSError: The host is unknown, or there is no way to it.
        """
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_datagram_endpoint(
            lambda: cls(welcome, sound, on_frame), remote_addr=(welcome.host, welcome.port)
        )
        return channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: object) -> None:
        header = parse(data)
        if header is None or header.sequence <= self._last:
            return
        self._last = header.sequence
        packet = self._channel.open(data)
        if self._decoder is None:
            self._on_frame(packet)
            return
        with suppress(OpusError):
            self._on_frame(self._decoder.decode(packet))

    def error_received(self, exc: Exception) -> None:
        """Do nothing: the edge may be gone for a moment, and its shard ends the session if it stays away."""

    def send(self, frame: bytes) -> bool:
        """Send an audio frame; return False for one of another length, or one that no datagram holds."""
        if self._transport is None:
            return False
        if self._encoder is not None and len(frame) != self._encoder.frame_bytes:
            return False
        packet = frame if self._encoder is None else self._encoder.encode(frame)
        if not 0 < len(packet) <= LARGEST - HEADER:
            return False
        self._sent += 1
        self._transport.sendto(self._channel.seal(packet, 0, self._sent))
        return True

    def close(self) -> None:
        if self._transport:
            self._transport.close()

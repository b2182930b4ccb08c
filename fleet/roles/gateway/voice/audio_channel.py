"""The UDP end of a session as the device has it: seals what it says, and opens what it hears."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, cast

from fleet.adapters.speech.opus import Decoder, Encoder, OpusError
from fleet.wire.packet import HEADER, LARGEST, UPLINK_FLAGS, Channel, parse
from fleet.wire.toc import empty_packet
from fleet.wire.voice_websocket import PCM_FRAME_MS, PCM_RATE, Sound, Welcome

QUIET_SECONDS: Final = 0.5
"""Time after which a client that has sent no audio, or too little of it, may have no microphone."""
PROVING: Final = 8
"""Audio packets of a client after which the edge knows where it is. Fewer may be too few: somebody touches the button
to talk, and types then."""
SILENT_SECONDS: Final = 1.0
"""Length of the silence that is sent in its place. It holds several times the packets that prove an address to the
edge, and is too short for the edge to infer that the client listens."""


class AudioChannel(asyncio.DatagramProtocol):
    """One session's audio; `open` makes it.

    An edge sends a device nothing until packets have shown where it is. A client that only types sends none, so silence
    is sent in its place; so it is behind a few packets of a client that goes on typing.

    Args:
        welcome: Has the key and the nonce.
        sound: What the client's audio frames are; PCM is encoded and decoded here.
        frame_ms: Length of the client's audio frames.
        on_frame: Takes each audio frame of the server, in order; late ones are dropped, as firmware does.
    """

    def __init__(self, welcome: Welcome, sound: Sound, frame_ms: int, on_frame: Callable[[bytes], None]) -> None:
        pcm = sound == "pcm"
        self._encoder = Encoder(PCM_RATE, PCM_FRAME_MS, application="voip") if pcm else None
        self._decoder = Decoder(welcome.rate) if pcm else None
        self._channel = Channel(welcome.key, int.from_bytes(welcome.nonce[4:8], "big"), UPLINK_FLAGS)
        self._on_frame = on_frame
        self._frame_ms = frame_ms
        self._sent = self._last = 0
        self._transport: asyncio.DatagramTransport | None = None
        self._silent_ms = 0
        """Silence that was sent."""
        self._spoken = 0
        """Packets of the client."""
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls, welcome: Welcome, sound: Sound, frame_ms: int, on_frame: Callable[[bytes], None]
    ) -> "AudioChannel":
        """Connect a socket to the edge that the server named.

        Raises:
            OSError: The host is unknown, or there is no way to it.
        """
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_datagram_endpoint(
            lambda: cls(welcome, sound, frame_ms, on_frame), remote_addr=(welcome.host, welcome.port)
        )
        return channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)
        self._await_quiet()

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
        if self._encoder is not None and len(frame) != self._encoder.frame_bytes:
            return False
        packet = frame if self._encoder is None else self._encoder.encode(frame)
        if not 0 < len(packet) <= LARGEST - HEADER:
            return False
        self._stop_silence()
        self._spoken += 1
        if self._spoken < PROVING:
            self._await_quiet()
        return self._send(packet)

    def close(self) -> None:
        self._stop_silence()
        if self._transport:
            self._transport.close()

    def _send(self, packet: bytes) -> bool:
        if self._transport is None:
            return False
        self._sent += 1
        self._transport.sendto(self._channel.seal(packet, 0, self._sent))
        return True

    def _await_quiet(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._send_silence)

    def _send_silence(self) -> None:
        """Send a silent packet, and the next one after its length; what comes from the edge ends this."""
        if self._last or self._silent_ms >= 1000 * SILENT_SECONDS:
            return
        self._send(empty_packet(self._frame_ms))
        self._silent_ms += self._frame_ms
        self._timer = asyncio.get_running_loop().call_later(self._frame_ms / 1000, self._send_silence)

    def _stop_silence(self) -> None:
        if self._timer:
            self._timer.cancel()

"""The device's encoder: 16 kHz, variable bitrate, complexity 0, and a frame of one byte where there is silence."""

import random
import struct

from fleet.sim.loudness import first_audible
from fleet.speech.opus import Encoder

SAMPLE_RATE = 16_000

_OPUS_AUTO = -1000
_HANGOVER_MS = 200
_REFRESH_MS = 400
_DTX = bytes([0x58])
_ROOM_NOISE = 60


class UplinkEncoder:
    """Encodes frames as firmware does (contract 4.2).

    Discontinuous transmission is done here as libopus does it: after 200 ms without a sound a frame is its first byte
    alone, and every 400 ms one full frame refreshes the background.

    Args:
        frame_ms: Milliseconds a packet.
    """

    def __init__(self, frame_ms: int) -> None:
        self.frame_ms = frame_ms
        self._encoder = Encoder(SAMPLE_RATE, frame_ms, bitrate=_OPUS_AUTO, complexity=0)
        self.frame_bytes = self._encoder.frame_bytes
        self._quiet_ms = 0

    def encode(self, pcm: bytes) -> bytes:
        """Return the packet of exactly one frame."""
        if first_audible(pcm) is not None:
            self._quiet_ms = 0
            return self._encoder.encode(pcm)
        self._quiet_ms += self.frame_ms
        silent_for = self._quiet_ms - _HANGOVER_MS
        if silent_for <= 0 or silent_for % _REFRESH_MS < self.frame_ms:
            return self._encoder.encode(pcm)
        return _DTX


def room_noise(frames: int, frame_ms: int, chance: random.Random) -> bytes:
    """Return PCM of a quiet room, so many frames long."""
    count = frames * frame_ms * SAMPLE_RATE // 1000
    return struct.pack(f"<{count}h", *(round(chance.gauss(0, _ROOM_NOISE)) for _ in range(count)))


def encode_all(pcm: bytes, frame_ms: int) -> list[bytes]:
    """Return the packets of a whole recording; the last one is filled up with silence."""
    encoder = UplinkEncoder(frame_ms)
    size = encoder.frame_bytes
    return [encoder.encode(pcm[at : at + size].ljust(size, b"\0")) for at in range(0, len(pcm), size)]

"""The encoder of the device: 16 kHz, variable bitrate, complexity 0, packets of one byte for silence."""

import random

import numpy as np

from fleet.adapters.speech.opus import Encoder
from fleet.workbench.sim.profiles.profile import OpusApplication

SAMPLE_RATE = 16_000

_OPUS_AUTO = -1000
_ROOM_NOISE = 160
"""Sample value, about -46 dB of full scale: what the encoder does not take for silence, nor a listener for speech."""


class UplinkEncoder:
    """Encodes frames as firmware does, by libopus's own discontinuous transmission (contract 4.2).

    Args:
        frame_ms: Milliseconds a packet.
        application: What the encoder is tuned for.
    """

    def __init__(self, frame_ms: int, application: OpusApplication = "audio") -> None:
        self.frame_ms = frame_ms
        self._encoder = Encoder(
            SAMPLE_RATE, frame_ms, bitrate=_OPUS_AUTO, complexity=0, dtx=True, application=application
        )
        self.frame_bytes = self._encoder.frame_bytes

    def encode(self, pcm: bytes) -> bytes:
        """Return the packet of exactly one frame."""
        return self._encoder.encode(pcm)


def room_noise(frames: int, frame_ms: int, chance: random.Random) -> bytes:
    """Return PCM of a quiet room, so many frames long."""
    count = frames * frame_ms * SAMPLE_RATE // 1000
    noise = np.random.default_rng(chance.getrandbits(32)).normal(0, _ROOM_NOISE, count)
    return bytes(noise.round().astype("<i2").tobytes())


def encode_all(pcm: bytes, frame_ms: int) -> list[bytes]:
    """Return the packets of a whole recording; the last one is filled up with silence."""
    encoder = UplinkEncoder(frame_ms)
    size = encoder.frame_bytes
    return [encoder.encode(pcm[at : at + size].ljust(size, b"\0")) for at in range(0, len(pcm), size)]

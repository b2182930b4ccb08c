"""Generated sound: noise of a room, and a signal that a speech codec handles like a voice."""

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.opus import Encoder
from fleet.workbench.bench.streams import FRAME_MS

UPLINK_RATE = 16_000
DOWNLINK_RATE = 24_000
_SEED = 1
_SECONDS = 6
_BITRATE = 16_000
"""Packets of 60 ms then have 110 and 95 bytes on average, as a device's have."""

_Sound = NDArray[np.float64]


def room(rate: int) -> bytes:
    """Return some seconds of noise: a detector that took it for speech would interrupt the answers."""
    hiss = np.random.default_rng(_SEED).standard_normal(rate * _SECONDS)
    swell = 1 + 0.8 * np.sin(2 * np.pi * 0.7 * _times(rate))
    return _pcm(np.convolve(hiss, np.ones(8) / 8, "same") * swell * 1500)


def voice(rate: int) -> bytes:
    """Return some seconds of a gliding tone with overtones, in syllables."""
    times = _times(rate)
    pitch = 140 * (1 + 0.15 * np.sin(2 * np.pi * 0.9 * times) + 0.03 * np.sin(2 * np.pi * 5 * times))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    tone = sum((np.sin(nth * phase) / nth * (1 + np.cos(0.2 * np.pi * nth * times)) for nth in range(1, 25)), times * 0)
    syllables = np.sqrt(np.maximum(0, np.sin(2 * np.pi * 2.1 * times)))
    breath = 0.02 * np.random.default_rng(_SEED).standard_normal(len(times))
    return _pcm((tone * syllables + breath) * 2500)


def packets(pcm: bytes, rate: int) -> list[bytes]:
    """Return a sound as Opus packets."""
    encoder = Encoder(rate, FRAME_MS, _BITRATE)
    size = encoder.frame_bytes
    return [encoder.encode(pcm[at : at + size]) for at in range(0, len(pcm) - size + 1, size)]


def _times(rate: int) -> _Sound:
    return np.arange(rate * _SECONDS) / rate


def _pcm(sound: _Sound) -> bytes:
    return np.clip(sound, -32768, 32767).astype("<i2").tobytes()

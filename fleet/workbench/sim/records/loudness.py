"""Where in a recording there is sound. PCM is 16-bit little-endian mono."""

import numpy as np

AUDIBLE = 300
"""Sample value from which on a listener hears something: about -40 dB of full scale."""
_SHARE = 0.05
_WINDOW_MS = 20
SAMPLE_BYTES = 2


def first_audible(pcm: bytes) -> int | None:
    """Return the index of the first audible sample, or None for silence."""
    loud = np.flatnonzero(np.abs(np.frombuffer(pcm, "<i2").astype(np.int32)) >= AUDIBLE)
    return int(loud[0]) if loud.size else None


def speech_bounds(pcm: bytes, sample_rate: int) -> tuple[int, int]:
    """Return the first sample of speech and the one after its last, found by level; the whole when all is silent."""
    samples = np.frombuffer(pcm, "<i2").astype(np.float64)
    window = sample_rate * _WINDOW_MS // 1000
    whole = samples[: len(samples) // window * window].reshape(-1, window)
    if not whole.size:
        return 0, len(samples)
    levels = np.sqrt((whole**2).mean(axis=1))
    loud = np.flatnonzero(levels >= max(float(levels.max()) * _SHARE, 1.0))
    if not loud.size:
        return 0, len(samples)
    return int(loud[0]) * window, (int(loud[-1]) + 1) * window

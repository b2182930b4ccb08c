"""Cut long utterances into windows for a recogniser that takes audio of limited length."""

import numpy as np

from fleet.core.ports import ASR_RATE

_STEP = ASR_RATE // 50
"""20 ms."""
_PAUSE_STEPS = 10


def split(pcm: bytes, shortest: float, longest: float) -> list[bytes]:
    """Return the windows of an utterance in order; together they are the whole.

    A window ends in the quietest 0.2 s between both limits. So a word is cut only if the speaker does not pause between
    them.

    Args:
        pcm: 16 kHz s16le mono.
        shortest: Shortest window in seconds.
        longest: Longest window in seconds.
    """
    samples = np.frombuffer(pcm, "<i2", count=len(pcm) // 2)
    windows: list[bytes] = []
    while len(samples) > longest * ASR_RATE:
        at = _quietest(samples, int(shortest * ASR_RATE), int(longest * ASR_RATE))
        windows.append(samples[:at].tobytes())
        samples = samples[at:]
    return [*windows, samples.tobytes()]


def _quietest(samples: np.ndarray[tuple[int], np.dtype[np.int16]], begin: int, end: int) -> int:
    steps = samples[begin:end].astype(np.float32)
    steps = steps[: len(steps) // _STEP * _STEP].reshape(-1, _STEP)
    power = np.convolve((steps**2).mean(axis=1), np.ones(_PAUSE_STEPS), mode="valid")
    return begin + (int(power.argmin()) + _PAUSE_STEPS // 2) * _STEP

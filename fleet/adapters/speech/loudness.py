"""Bring voices to one level: each is measured while it speaks, and amplified or attenuated to -20 dBFS."""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

TARGET = 0.1
"""RMS of speech without its pauses, full scale 1: -20 dBFS."""
LEAST_GAIN, MOST_GAIN = 0.25, 4.0
"""12 dB: a voice that is further away is whispered or shouted on purpose, or is no voice."""
_FRAME_SECONDS = 0.02
_PAUSE = 0.01
"""RMS below which a frame is a pause, -40 dBFS; -52 dBFS for a voice that was amplified most."""
_MEMORY_SECONDS = 10.0
_LEAST_SECONDS = 0.2
"""Speech after which a level is known."""
_RAMP_SECONDS = 0.2
_KNEE = 0.8
_MOST_VOICES = 32

_TO_SAMPLE: Final = np.float32(1 / 32768)
_FROM_SAMPLE: Final = np.float32(32767)


class VoiceLevel:
    """The level of one voice; shared by all its sentences. A lost update of two threads at once does no harm."""

    def __init__(self) -> None:
        self._power = 0.0
        self._seconds = 0.0

    @property
    def gain(self) -> float | None:
        """Factor for this voice; None until enough of it was heard."""
        if self._seconds < _LEAST_SECONDS:
            return None
        return min(max(TARGET / math.sqrt(self._power), LEAST_GAIN), MOST_GAIN)

    def measure(self, samples: NDArray[np.float32], rate: int) -> None:
        """Take audio; its pauses do not count."""
        frame = int(rate * _FRAME_SECONDS)
        frames = samples[: len(samples) // frame * frame].reshape(-1, frame)
        powers = np.einsum("ij,ij->i", frames, frames) / frame
        loud = powers[powers > _PAUSE**2]
        if not len(loud):
            return
        seconds = len(loud) * _FRAME_SECONDS
        share = seconds / (min(self._seconds, _MEMORY_SECONDS) + seconds)
        self._power += share * (float(loud.mean()) - self._power)
        self._seconds += seconds


class VoiceLevels:
    """The levels of the voices of a process."""

    def __init__(self) -> None:
        self._levels: dict[str, VoiceLevel] = {}

    def find(self, voice: str) -> VoiceLevel:
        """Return the level of a voice by its name; of too many names, the last ones share one."""
        known = voice in self._levels or len(self._levels) < _MOST_VOICES
        return self._levels.setdefault(voice if known else "", VoiceLevel())


class Leveller:
    """Brings one sentence to the target; used by one thread at a time.

    Args:
        level: Of its voice.
        rate: Of the PCM, in Hz.
    """

    def __init__(self, level: VoiceLevel, rate: int) -> None:
        self._level = level
        self._rate = rate
        self._gain = level.gain
        self._half = b""
        self._ramp = 0
        """Samples over which the gain is reached, if some were passed unchanged."""

    def process(self, pcm: bytes) -> bytes:
        """Return s16le PCM of the same length; half a sample is kept until its rest arrives.

        A sentence keeps its gain: a voice that becomes softer within it means to. Only the first sentence of a voice
        may begin without one; then the gain comes without a step. Peaks are rounded, not cut.
        """
        pcm = self._half + pcm
        whole = len(pcm) // 2 * 2
        self._half = pcm[whole:]
        if not whole:
            return b""
        # One array for all steps: the memory of each further one would have to come into the cache first.
        samples = np.frombuffer(pcm, "<i2", whole // 2).astype(np.float32)
        samples *= _TO_SAMPLE
        self._level.measure(samples, self._rate)
        gain = self._gain or self._level.gain
        if gain is None:
            self._ramp = int(self._rate * _RAMP_SECONDS)
            return pcm[:whole]
        self._gain = gain
        ramp, self._ramp = min(len(samples), self._ramp), 0
        if ramp:
            samples[:ramp] *= np.linspace(1.0, gain, ramp, dtype=np.float32)
        samples[ramp:] *= np.float32(gain)
        if samples.max() > _KNEE or samples.min() < -_KNEE:
            _limit(samples)
        samples *= _FROM_SAMPLE
        return samples.astype("<i2").tobytes()


def _limit(samples: NDArray[np.float32]) -> None:
    """Bend what is above the knee below full scale."""
    high = np.flatnonzero(np.abs(samples) > _KNEE)
    peaks = samples[high]
    bent = _KNEE + (1 - _KNEE) * np.tanh((np.abs(peaks) - _KNEE) / (1 - _KNEE))
    samples[high] = np.sign(peaks) * bent

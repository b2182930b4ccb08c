"""Prepare a synthesised piece for playback: trim silence, set the level, convert it to PCM."""

import numpy as np
from numpy.typing import NDArray

Waveform = NDArray[np.float32]

_FRAME = 240
_SILENCE = 0.006
"""-44 dBFS; below this level the ends of both voices hold only noise of breathing."""
_PEAK = 0.95


def trim_silence(audio: Waveform, kept: int, lead: int | None = None) -> Waveform:
    """Return the audio with at most `kept` samples of silence at either end, or `lead` samples at its beginning."""
    frames = len(audio) // _FRAME
    if not frames:
        return audio
    loudness = np.sqrt(np.mean(audio[: frames * _FRAME].reshape(frames, _FRAME) ** 2, axis=1))
    heard = np.flatnonzero(loudness > _SILENCE)
    if not len(heard):
        return audio[:0]
    start, end = heard[0] * _FRAME - (kept if lead is None else lead), (heard[-1] + 1) * _FRAME + kept
    return audio[max(0, start) : end]


def to_pcm(audio: Waveform, gain: float) -> bytes:
    """Return s16le PCM; audio that would clip is scaled down as a whole."""
    loud = audio * gain
    peak = float(np.max(np.abs(loud), initial=0.0))
    if peak > _PEAK:
        loud *= _PEAK / peak
    return (loud * 32767).astype("<i2").tobytes()


def silence(seconds: float, rate: int) -> bytes:
    return bytes(int(seconds * rate) * 2)

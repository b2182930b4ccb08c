"""A voice that every speech detector takes for speech, and that says a mark with every tenth of a second of it.

A mark is a chord of two steady tones above the voice, one out of each of two scales. It survives Opus at the bit rates
of devices and lost packets, and is heard neither in speech nor in noise nor in silence. PCM is 16-bit little-endian
mono.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.pcm import SAMPLE_BYTES, read_wav, resample

RATE = 16_000
"""Of the voice, in Hz; other rates are resampled."""
_FIRST, _LAST = 100, 423
_LEFT_OUT = frozenset(
    (
        *(105, 106, 109, 113, 151, 152, 172, 175, 187, 190, 193, 198, 200, 204),
        *(207, 211, 212, 213, 216, 217, 218, 226, 230, 232, 233, 234, 235, 245),
        *(246, 247, 249, 251, 252, 253, 263, 265, 266, 268, 269, 282, 287, 292),
        *(294, 295, 300, 307, 308, 310, 316, 317, 320, 323, 326, 330, 331, 343),
        *(347, 349, 355, 361, 362, 363, 370, 376, 378, 380, 395, 409, 421),
    )
)
"""Chords of which the encoder of a device garbles over 0.12 s of 1.2 s, depending on what it encoded before, or over
which the speech detector hears no voice for more than 0.12 s."""
MARKS: Final = tuple(mark for mark in range(_FIRST, _LAST + 1) if mark not in _LEFT_OUT)
"""All marks; of three digits each, so that they are found in texts whose spaces somebody has removed."""

_WINDOW = 1920
"""Samples that are looked at together, 120 ms: a tone lasts a whole number of periods in them."""
_HOP = 480
_LOWEST, _SPACING, _TONES = 252, 13, 18
"""Of the first scale in 1/120 ms: 2.1 to 3.9 kHz in steps of 108 Hz. The steps are no multiple of 50 Hz: a codec's
frames shimmer at multiples of it, which puts shadows of a tone there."""
_SCALES = (_LOWEST, _LOWEST + _SPACING * (_TONES + 1))
_TONE = 0.02
"""A tone's amplitude; the voice's is 0.11 on average."""
_FADE = 160
_SMOOTHED = 5
"""Windows whose tones count together: over 240 ms a lost packet or a hiss does not matter."""
_LEAST_SHARE = 0.5
"""Of the power on a scale that its loudest tone must have; of noise and voices it has a fifth."""
_LEAST_LOUD = 2e-4
"""Of a window's power that the two tones must have: rounding and codecs put faint chords beside pure sounds."""
_FAINTEST = 1.5 * (10 * _WINDOW / 4) ** 2
"""Power of a tone with an amplitude of 10 in 32768; nothing fainter is a mark."""
_LEAST_WINDOWS = 4
"""Neighbouring windows that must carry the same mark: a high-pitched voice holds a chord for a shorter time."""
_SHORT = 0.35
"""Seconds; so short is a slip of the codec, if it is beside a longer run that has one of its tones."""
_LONGEST_GAP = 0.5
"""Seconds; two runs of a mark closer together are one."""
_INSIDE = 0.2
"""Of a run's typical power: at the edge of a tone a window has a quarter."""

_Floats = NDArray[np.float32]
_Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark that sounds from `begin` to `end`, in seconds from the start of the audio.

    Mostly right to 60 ms; where a codec garbles an edge, a quarter of a second may be missing.
    """

    mark: int
    begin: float
    end: float


def say(mark: int, seconds: float, *, rate: int = RATE, offset: float = 0.0) -> bytes:
    """Return PCM of the voice that says a mark without a pause.

    Args:
        mark: One of `MARKS`.
        seconds: How long it lasts.
        rate: Of the PCM, in Hz.
        offset: Seconds into the recording at which the voice begins; it is repeated as often as needed.

    Raises:
        ValueError: There is no such mark.
    """
    if mark not in MARKS:
        raise ValueError(f"there is no mark {mark}")
    count = max(0, round(seconds * RATE))
    voice = np.resize(np.roll(_recording(), -round(offset * RATE)), count) + np.resize(_chord(mark), count)
    return _finish(voice, rate)


def hum(seconds: float, *, rate: int = RATE) -> bytes:
    """Return PCM of a plain low tone without a mark."""
    times = np.arange(max(0, round(seconds * RATE)), dtype=np.float32) / RATE
    return _finish((0.15 * np.sin(2 * np.pi * 330 * times)).astype(np.float32), rate)


def read(pcm: bytes, rate: int = RATE) -> list[Marked]:
    """Return which marks sound when, in their order; a mark needs about a fifth of a second to be read."""
    whole = pcm[: len(pcm) // SAMPLE_BYTES * SAMPLE_BYTES]
    samples = np.frombuffer(resample(whole, rate, RATE), "<i2").astype(np.float32)
    if len(samples) < _WINDOW:
        return []
    runs = list(_runs(*_listen(samples)))
    found: list[Marked] = []
    for run in runs:
        if run.mark not in MARKS or any(_is_slip(run, other) for other in runs):
            continue
        last = found[-1] if found else None
        if last and last.mark == run.mark and run.begin - last.end < _LONGEST_GAP:
            found[-1] = Marked(run.mark, last.begin, run.end)
        else:
            found.append(run)
    return found


def dominant(heard: Sequence[Marked]) -> dict[int, float]:
    """Return for how many seconds each mark sounds, the longest first."""
    seconds: dict[int, float] = {}
    for marked in heard:
        seconds[marked.mark] = seconds.get(marked.mark, 0.0) + marked.end - marked.begin
    return dict(sorted(seconds.items(), key=lambda item: item[1], reverse=True))


def _finish(voice: _Floats, rate: int) -> bytes:
    edge = np.minimum(np.arange(len(voice), dtype=np.float32) / _FADE, 1)
    samples = (voice * edge * edge[::-1] * 32767).astype("<i2").tobytes()
    return resample(samples, RATE, rate)


@cache
def _recording() -> _Floats:
    pcm, _ = read_wav(files("fleet.workbench.conformance.steering").joinpath("voice.wav").read_bytes())
    return (np.frombuffer(pcm, "<i2") / 32768).astype(np.float32)


@cache
def _chord(mark: int) -> _Floats:
    steps = divmod(mark - _FIRST, _TONES)
    times = np.arange(_WINDOW) / _WINDOW
    tones = [
        np.sin(2 * np.pi * (lowest + _SPACING * step) * times) for lowest, step in zip(_SCALES, steps, strict=True)
    ]
    chord: _Floats = (_TONE * sum(tones, np.zeros(_WINDOW))).astype(np.float32)
    return chord


def _listen(samples: _Floats) -> tuple[_Numbers, _Floats, _Floats]:
    """Return for each window the mark that it carries, how clearly (0 to 1), and the power of its tones."""
    windows = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::_HOP] * _hann()
    power = np.abs(np.fft.rfft(windows, axis=1)) ** 2
    marks = np.full(len(windows), _FIRST)
    clear, loud = np.ones(len(windows), np.float32), np.zeros(len(windows), np.float32)
    for lowest, worth in zip(_SCALES, (_TONES, 1), strict=True):
        at = lowest + _SPACING * np.arange(_TONES)
        tones = power[:, at - 1] + power[:, at] + power[:, at + 1]
        shares = _smooth(tones / np.maximum(tones.sum(axis=1, keepdims=True), 1e-9))
        best = shares.argmax(axis=1)
        row = np.arange(len(best))
        marks += worth * best
        clear = np.minimum(clear, shares[row, best])
        loud += tones[row, best]
    too_faint = loud < np.maximum(_LEAST_LOUD * power.sum(axis=1), _FAINTEST)
    return marks, np.where(too_faint, np.float32(0), clear), loud


@cache
def _hann() -> _Floats:
    turn = 2 * np.pi * np.arange(_WINDOW) / _WINDOW
    hann: _Floats = (0.5 - 0.5 * np.cos(turn)).astype(np.float32)
    return hann


def _smooth(shares: _Floats) -> _Floats:
    """Return for each window the mean of the windows around it; at an edge, of those next to the edge."""
    sums = np.concatenate((np.zeros((1, shares.shape[1])), np.cumsum(shares, axis=0)))
    count = min(_SMOOTHED, len(shares))
    begin = np.clip(np.arange(len(shares)) - count // 2, 0, len(shares) - count)
    smoothed: _Floats = (np.subtract(sums[begin + count], sums[begin]) / count).astype(np.float32)
    return smoothed


def _runs(marks: _Numbers, clear: _Floats, loud: _Floats) -> Iterator[Marked]:
    """Yield the stretches in which enough windows carry the same mark."""
    told = np.where(clear >= _LEAST_SHARE, marks, 0)
    borders = np.flatnonzero(np.diff(told, prepend=-1, append=-1))
    for first, after in pairwise(borders):
        if not told[first] or after - first < _LEAST_WINDOWS:
            continue
        powers = loud[first:after]
        inside = first + np.flatnonzero(powers >= _INSIDE * np.median(powers))
        begin = 0 if inside[0] == 0 else inside[0] * _HOP + _WINDOW // 2
        end = inside[-1] * _HOP + (_WINDOW if inside[-1] == len(loud) - 1 else _WINDOW // 2)
        yield Marked(int(told[first]), float(begin / RATE), float(end / RATE))


def _is_slip(run: Marked, beside: Marked) -> bool:
    """Say whether a run is a misreading of one tone of another."""
    (high, low), (other_high, other_low) = (divmod(marked.mark - _FIRST, _TONES) for marked in (run, beside))
    if (high == other_high) == (low == other_low):
        return False
    length = run.end - run.begin
    apart = max(run.begin - beside.end, beside.begin - run.end)
    return length < _SHORT and beside.end - beside.begin > 2 * length and apart < _LONGEST_GAP

"""What is left of the echo after the filter: how much of it is to be expected, and whether it is somebody.

The microphone's codec (16 kbit/s) leaves a rest that no filter can predict, 10 to 12 dB below the echo and louder in
high frequencies. Its share of the echo is learned for each band. What is above it is a user.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.echo_far import FRAME, Samples

_HOP, _WINDOW = 320, 640
"""20 and 40 ms."""
_SHAPE: Final = np.sqrt(np.hanning(_WINDOW + 1)[:_WINDOW]).astype(np.float32)
_BIN_HZ = 25
_EDGES: Final = np.unique(
    np.round(np.concatenate((np.linspace(100, 1000, 13), np.geomspace(1100, 7500, 14))) / _BIN_HZ)
)
_FIRST: Final = _EDGES.astype(int)
"""First bins of the bands; the last one reaches to 8 kHz."""
_WIDTHS: Final = np.diff(np.append(_FIRST, _WINDOW // 2 + 1)).astype(np.float32)
_BAND: Final = np.clip(np.searchsorted(_FIRST, np.arange(_WINDOW // 2 + 1), side="right") - 1, 0, None)
_HISS: Final = np.float32(_WINDOW / 2 * 0.002**2)
"""Power of a bin that is nobody in any case: white noise of -54 dBFS."""
_SOMEBODY = 2.0
"""Energy above the expected rest, as a multiple of it, from which it is somebody."""
_LEAST_POWER = 10**-4.6
_LIMIT = 3.0
"""A rest counts at most as so many times the expected one when the share is learned: more is a user."""
_PACE, _SLOW_PACE = 0.03, 0.003
"""Share of the newest frame in what is learned: usually, and while somebody seems to be there."""
_AUDIBLE = 1e-3
_LEAST_SHARE = 0.1
"""Energy of the prediction, alone and as a share of the rest, below which nothing is learned."""
_TOO_MUCH = 1.5
"""How much more than the expected rest is removed."""
_DEEPEST = np.float32(0.1)
"""Least gain, -20 dB: less is heard as holes."""


class EchoRest:
    """The rest of the echo in one microphone."""

    def __init__(self) -> None:
        self._before = np.zeros((2, _HOP), np.float32)
        self._overlap = np.zeros(_HOP, np.float32)
        self._rest = np.full(len(_FIRST), 1e-6, np.float32)
        self._echo = np.full(len(_FIRST), 1e-6, np.float32)

    def remove(self, rest: Samples, echo: Samples, *, learning: bool, reliable: bool) -> tuple[Samples, bool]:
        """Return a frame without what is expected of the echo, 20 ms late, and whether it holds somebody.

        Args:
            rest: The microphone without the predicted echo.
            echo: The prediction.
            learning: Whether the rest is still large because the filter learns.
            reliable: Whether the prediction is right; nothing is learned of a wrong one.
        """
        spectra = self._transform(np.stack((rest, echo)))
        power = spectra.real**2 + spectra.imag**2
        heard, predicted = (np.mean(np.add.reduceat(one, _FIRST, axis=1), axis=0) for one in power)
        share = self._rest / self._echo
        expected = share * predicted + _HISS * _WIDTHS
        excess = float(np.sum(np.maximum(heard - expected, 0)) / np.sum(expected))
        somebody = reliable and excess > _SOMEBODY and float(rest @ rest) > _LEAST_POWER * FRAME
        if (reliable or learning) and np.sum(predicted) > max(_AUDIBLE, _LEAST_SHARE * np.sum(heard)):
            pace = np.float32(_SLOW_PACE if somebody else _PACE)
            usual = heard if learning else np.minimum(heard, _LIMIT * expected)
            self._rest += pace * (usual - self._rest)
            self._echo += pace * (predicted - self._echo)
        gain = np.maximum(_DEEPEST, 1 - _TOO_MUCH * share[_BAND] * power[1] / (power[0] + np.float32(1e-9)))
        return self._restore(spectra[0] * gain), somebody

    def _transform(self, frames: NDArray[np.float32]) -> NDArray[np.complexfloating]:
        whole = np.concatenate((self._before, frames), axis=1)
        self._before = frames[:, -_HOP:]
        windows = np.lib.stride_tricks.sliding_window_view(whole, _WINDOW, axis=1)[:, ::_HOP]
        return np.fft.rfft(windows * _SHAPE, axis=2)

    def _restore(self, spectra: NDArray[np.complexfloating]) -> Samples:
        windows = np.fft.irfft(spectra, axis=1) * _SHAPE
        out = np.zeros(FRAME + _HOP, np.float32)
        out[:_HOP] = self._overlap
        for number, window in enumerate(windows):
            out[number * _HOP : number * _HOP + _WINDOW] += window
        self._overlap = out[FRAME:].copy()
        return out[:FRAME]

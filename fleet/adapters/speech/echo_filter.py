"""An adaptive filter that predicts the echo: a Kalman filter for each frequency, in blocks of 60 ms.

Enzner and Vary, "Frequency-domain adaptive Kalman filter for acoustic echo control in hands-free telephones", 2006,
with the response in partitions. It needs no detector of double talk: a user's speech makes its steps small.
"""

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.echo_far import BLOCKS, FRAME, FarSound, Samples, Spectra

_BINS = FRAME + 1
_STEADY = 0.9998
"""How much of the response stays from frame to frame; rooms change slowly."""
_UNKNOWN = 1.0
"""Variance of a response of which nothing is known."""
_SMOOTH = 0.7
_LEARNING_FRAMES = 30
"""Frames with an echo until the response is good enough to be relied on: 1.8 s."""
_SLIPS = (-2, -1, 1, 2)
_RECENT = 0.6
"""Weight of the past, from frame to frame, in the judgement of the response."""
_FAITHFUL = 0.6
_WRONG = 0.5
"""Share of the prediction that is really heard, below which a slip is searched, and below which nothing is right."""
_FAINT = 1.4
_MUCH_LOUDER = 8.0
"""Share of the prediction from which it is too faint, as in frequencies that the answer had not yet; unless the
microphone is so much louder, because somebody speaks: then chance alone gives such a share."""
_DOUBTFUL_FRAMES = 6
"""Frames after a change of the volume in which nobody is heard: it may have been frequencies that are not known yet."""
_LOST_FRAMES = 8
"""So many wrong frames in a row, and the response is learned anew."""
_AUDIBLE = 1e-3
"""Power of a prediction, as a share of the microphone's, below which the echo does not matter."""
_SAME = 0.5
"""Squared correlation of prediction and microphone from which only the volume has changed."""


class EchoFilter:
    """Predicts the echo in one microphone; 0.1 MB."""

    def __init__(self) -> None:
        self.far = FarSound()
        self._response: Spectra = np.zeros((BLOCKS, _BINS), np.complex64)
        self._variance: NDArray[np.float32] = np.full((BLOCKS, _BINS), _UNKNOWN, np.float32)
        self._noise: NDArray[np.float32] = np.full(_BINS, 0.01 * FRAME, np.float32)
        self._near_power = 0.0
        self._fits = {frames: _Fit() for frames in (0, *_SLIPS)}
        self._learning = _LEARNING_FRAMES
        self._wrong = 0
        self._doubtful = 0

    @property
    def learning(self) -> bool:
        """Whether the response is not known yet."""
        return self._learning > 0

    @property
    def doubtful(self) -> bool:
        """Whether the volume has just changed, or seemed to."""
        return self._doubtful > 0

    @property
    def reliable(self) -> bool:
        """Whether the prediction for the last frame is right: neither that of another place nor too faint."""
        fit = self._fits[0]
        faint = fit.share > _FAINT and self._near_power < _MUCH_LOUDER * fit.predicted
        return not self._learning and not self._wrong and not faint

    def predict(self, near: Samples) -> Samples:
        """Return the echo in a frame of the microphone, and learn from it."""
        if self.far.silent:
            return np.zeros(FRAME, np.float32)
        far = self.far.spectra()
        echo = self._echo(far)
        fit = self._fits[0]
        fit.note(near, echo)
        self._doubtful = max(0, self._doubtful - 1)
        self._near_power = _RECENT * self._near_power + float(near @ near)
        audible = not self._learning and fit.predicted > max(_AUDIBLE * self._near_power, 1e-4)
        if audible and not _FAITHFUL <= fit.share <= 1 / _FAITHFUL:
            if shift := self._find_slip(near):
                self.far.shift(shift)
                self._fits[0] = fit = self._fits[shift]
                self._forget_slips()
                far = self.far.spectra()
                echo = self._echo(far)
            elif fit.heard > 0 and fit.heard**2 > _SAME * fit.predicted * self._near_power:
                self._response *= np.float32(fit.share)
                echo *= np.float32(fit.share)
                self._fits[0] = fit = _Fit()
                self._doubtful = _DOUBTFUL_FRAMES
        else:
            self._forget_slips()
        self._judge(audible and fit.share < _WRONG and fit.predicted > 0)
        if not self._wrong:
            self._learn(near - echo, far)
        return echo

    def _echo(self, far: Spectra) -> Samples:
        return np.fft.irfft(np.sum(self._response * far, axis=0))[FRAME:].astype(np.float32)

    def _find_slip(self, near: Samples) -> int:
        """Return by how many frames what was played must be shifted to be what was heard; 0 if no shift helps."""
        for frames in _SLIPS:
            self._fits[frames].note(near, self._echo(self.far.spectra(frames)))
        best = max(self._fits, key=lambda frames: self._fits[frames].removed)
        fit = self._fits[best]
        better = fit.removed > self._fits[0].removed + 0.5 * fit.predicted
        return best if better and fit.share > 0.7 else 0

    def _forget_slips(self) -> None:
        for frames in _SLIPS:
            self._fits[frames] = _Fit()

    def _judge(self, wrong: bool) -> None:
        self._wrong = self._wrong + 1 if wrong else 0
        if self._wrong > _LOST_FRAMES:
            self._variance[:] = _UNKNOWN
            self._learning, self._wrong = _LEARNING_FRAMES, 0
            self._response[:] = 0

    def _learn(self, rest: Samples, far: Spectra) -> None:
        self._learning = max(0, self._learning - 1)
        error = np.fft.rfft(np.concatenate((np.zeros(FRAME, np.float32), rest))).astype(np.complex64)
        power = far.real**2 + far.imag**2
        self._noise = _SMOOTH * self._noise + (1 - _SMOOTH) * (error.real**2 + error.imag**2)
        step = self._variance / (0.5 * np.sum(self._variance * power, axis=0) + self._noise + np.float32(1e-9))
        change = np.fft.irfft(step * np.conj(far) * error, axis=1)
        change[:, FRAME:] = 0
        response = np.float32(_STEADY) * (self._response + np.fft.rfft(change, axis=1))
        self._response = response.astype(np.complex64)
        left = np.float32(_STEADY**2) * (1 - 0.5 * step * power) * self._variance
        drift = np.float32(1 - _STEADY**2) * (self._response.real**2 + self._response.imag**2)
        self._variance = (left + drift).astype(np.float32)


class _Fit:
    """How well a prediction is what was heard in the last frames."""

    def __init__(self) -> None:
        self.heard = self.predicted = 0.0

    def note(self, near: Samples, echo: Samples) -> None:
        self.heard = _RECENT * self.heard + float(near @ echo)
        self.predicted = _RECENT * self.predicted + float(echo @ echo)

    @property
    def share(self) -> float:
        """1 if all of the prediction was heard, 0 if nothing."""
        return self.heard / self.predicted if self.predicted else 1.0

    @property
    def removed(self) -> float:
        """Energy that the prediction removes."""
        return 2 * self.heard - self.predicted

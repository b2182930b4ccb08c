"""Voice activity: Silero VAD in one session for all streams, 1.3 KB of state for each."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.model_files import SILERO
from fleet.adapters.speech.onnx_sessions import OnnxSession, load_session

RATE = 16_000
WINDOW = 512
"""Samples of a window, 32 ms."""
CONTEXT = 64
"""Samples before a window that the model is given with it."""

_CELLS = 128
_LARGEST_BATCH = 64

Samples = NDArray[np.float32]
"""Audio at 16 kHz, -1 to 1."""


class VadState:
    """The model's state of one stream: its recurrent cells and the end of the last window.

    `speech` is the last probability; `AudioInput` sets it.
    """

    __slots__ = ("cells", "context", "speech")

    def __init__(self) -> None:
        self.cells = np.zeros((2, _CELLS), np.float32)
        self.context = np.zeros(CONTEXT, np.float32)
        self.speech = 0.0

    def skip(self, samples: Samples) -> None:
        """Go on after these samples without judging them: they are the context of the next window."""
        if len(samples) < CONTEXT:
            samples = np.concatenate((self.context, samples))
        self.context = samples[-CONTEXT:].copy()


class SileroVad:
    """The model, shared by all streams; for one thread at a time."""

    def __init__(self, session: OnnxSession) -> None:
        self._session = session
        self._rate = np.array(RATE, np.int64)

    @classmethod
    def load(cls, model_dir: Path | None) -> "SileroVad":
        """Return the model; blocks for about 0.1 s.

        Raises:
            ConfigError: The model or onnxruntime is missing.
        """
        return cls(load_session(SILERO, model_dir))

    def probabilities(self, windows: Sequence[tuple[VadState, Samples]]) -> list[float]:
        """Return the probability of speech in each window, and update the state of its stream.

        Args:
            windows: Streams with their next `WINDOW` samples; each stream at most once.
        """
        found: list[float] = []
        for start in range(0, len(windows), _LARGEST_BATCH):
            found.extend(self._run(windows[start : start + _LARGEST_BATCH]))
        return found

    def _run(self, windows: Sequence[tuple[VadState, Samples]]) -> list[float]:
        # Copied to and from two arrays of the batch: `np.stack` and new arrays for each stream cost twice as much.
        audio = np.empty((len(windows), CONTEXT + WINDOW), np.float32)
        cells = np.empty((2, len(windows), _CELLS), np.float32)
        for row, (state, samples) in enumerate(windows):
            audio[row, :CONTEXT] = state.context
            audio[row, CONTEXT:] = samples
            cells[:, row] = state.cells
        speech, cells = self._session.run(None, {"input": audio, "state": cells, "sr": self._rate})
        for row, (state, _) in enumerate(windows):
            state.cells[:] = cells[:, row]
            state.context[:] = audio[row, -CONTEXT:]
        found: list[float] = speech[:, 0].tolist()
        return found

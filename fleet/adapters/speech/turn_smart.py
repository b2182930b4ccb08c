"""Whether a speaker has finished: smart-turn v3.2, which hears the last 8 s of the utterance."""

from functools import partial
from pathlib import Path

import numpy as np

from fleet.adapters.speech import whisper_mel
from fleet.adapters.speech.fair_engine import FairEngine
from fleet.adapters.speech.model_files import SMART_TURN
from fleet.adapters.speech.onnx_sessions import load_session
from fleet.adapters.speech.whisper_mel import RATE

QUEUE = 16
"""Pauses that wait for the thread."""
TIMEOUT = 1.0
"""Longest wait in seconds, with the time in the queue: a later verdict would be of no use."""
_SAMPLES = 8 * RATE
_BANDS = 80
_SMALL = 1e-7


class SmartTurn:
    """Judges one pause after another in one thread, 40 ms each.

    Args:
        model_dir: Folder with model files to use instead of the installed ones.

    Raises:
        ConfigError: The model or onnxruntime is missing. Blocks for 0.2 s.
    """

    def __init__(self, model_dir: Path | None = None) -> None:
        self._session = load_session(SMART_TURN, model_dir, quantised=True)
        self._engine = FairEngine("turn", threads=1, queue=QUEUE)
        # The first run is slow. Run it now, so that no user waits for it.
        self._judge(bytes(2 * RATE))

    @property
    def has_room(self) -> bool:
        """Whether more than half of the engine's places are free."""
        return self._engine.has_room

    async def finished(self, pcm: bytes) -> float:
        """Return the probability that the speaker has finished; see `fleet.core.ports.TurnDetector`."""
        return await self._engine.run(partial(self._judge, pcm), TIMEOUT)

    async def aclose(self) -> None:
        """Refuse further work."""
        self._engine.close()

    def _judge(self, pcm: bytes) -> float:
        heard = np.frombuffer(pcm[-2 * _SAMPLES :], "<i2").astype(np.float32) / 32768
        # As in the model's training: silence before the speech, then zero mean and unit variance of the whole.
        audio = np.concatenate((np.zeros(_SAMPLES - len(heard), np.float32), heard))
        audio = (audio - audio.mean()) / np.sqrt(audio.var() + _SMALL)
        (answer,) = self._session.run(None, {"input_features": whisper_mel.spectrogram(audio, _BANDS)})
        return float(answer[0, 0])

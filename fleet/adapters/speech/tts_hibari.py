"""The English voice: hibari on onnxruntime, 24 kHz, about 150 times faster than speech."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from fleet.adapters.speech.model_files import HIBARI, PHONEME_IDS, opened, require
from fleet.adapters.speech.onnx_sessions import load_session
from fleet.adapters.speech.waveform import Waveform
from fleet.ground.errors import ConfigError

RATE = 24_000
GAIN = 1.9
"""Factor of the samples; with Kokoro's own `GAIN` it brings both voices to one loudness."""
LONGEST = 240
"""Most characters of one run of the model."""

_LONGEST_PHONEMES = 500
_MULTIPLICATION = re.compile(r"(?<=\d) ?\* ?(?=\d)")


class HibariVoice:
    """Speaks English; for one thread at a time. Making one blocks for about 1 s.

    hibari's own main class is not used, because it can download other voices.

    Args:
        model_dir: Folder with model files to use instead of those in the Python packages.

    Raises:
        ConfigError: The model or a package is missing.
    """

    def __init__(self, model_dir: Path | None = None) -> None:
        self._session = load_session(HIBARI, model_dir)
        self._read: Any = require("hibari.g2p").G2P()
        self._synthesize: Any = require("hibari.dsp").synth
        self._random = np.random.default_rng()
        self._phoneme_ids = load_phoneme_ids(model_dir)

    def phonemes(self, text: str) -> str:
        """Return the phonemes of English text, with numbers, times and dates as words."""
        # hibari reads "×" as a word, but leaves out "*".
        return str(self._read(_MULTIPLICATION.sub(" × ", text)))

    def synthesize(self, text: str, speed: float = 1.0) -> Waveform:
        """Return the audio of a piece of text of at most `LONGEST` characters; empty if nothing in it can be spoken."""
        phonemes = self.phonemes(text)
        ids = [self._phoneme_ids[symbol] for symbol in phonemes if symbol in self._phoneme_ids][:_LONGEST_PHONEMES]
        if not any(symbol.isalpha() for symbol in phonemes):
            return np.zeros(0, np.float32)
        inputs: dict[str, NDArray[Any]] = {
            "ids": np.array([[0, *ids, 0]], np.int64),
            "speed": np.full(1, speed, np.float32),
        }
        parts = [output[0] for output in self._session.run(None, inputs)]
        audio: Waveform = self._synthesize(*parts, self._random)
        return audio


def load_phoneme_ids(model_dir: Path | None) -> dict[str, int]:
    """Return the model's id of each phoneme, the same for hibari and Kokoro.

    Raises:
        ConfigError: The table is missing or damaged.
    """
    with opened(PHONEME_IDS, model_dir) as path:
        try:
            return TypeAdapter(dict[str, int]).validate_json(path.read_bytes())
        except ValidationError as error:
            raise ConfigError(f"{PHONEME_IDS.name} cannot be read: {error}") from error

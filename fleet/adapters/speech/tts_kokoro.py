"""The Chinese voice: Kokoro-82M (int8) on onnxruntime, 24 kHz, also with English words in the text.

A second of speech takes 0.3 s on one core with AVX-512 VNNI, 0.65 s with AVX2 only.
"""

import copy
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.model_files import KOKORO, find_voice
from fleet.adapters.speech.onnx_sessions import load_session, shrinking
from fleet.adapters.speech.pinyin_phonemes import MandarinReader
from fleet.adapters.speech.tts_hibari import load_phoneme_ids
from fleet.adapters.speech.waveform import Waveform
from fleet.ground.errors import ConfigError

RATE = 24_000
GAIN = 0.6
"""Factor of the samples; with hibari's own `GAIN` it brings both voices to one loudness."""
FIRST = 6
GROWTH = 1.5
LONGEST = 36
"""Most characters of one run of the model; each takes 5 MB of memory during the run."""

_LENGTHS = 510
_STYLE = 256
"""A voice has a style vector for each number of phonemes: `_LENGTHS` vectors of `_STYLE` numbers."""

Styles = NDArray[np.floating]


class KokoroVoice:
    """Speaks Chinese; for one thread at a time. Making one blocks for about 1 s.

    Args:
        styles: The voice, see `load_styles`.
        english: Returns the phonemes of English words.
        model_dir: Folder with model files to use instead of those in the Python packages.

    Raises:
        ConfigError: The model or a package is missing.
    """

    def __init__(self, styles: Styles, english: Callable[[str], str], model_dir: Path | None = None) -> None:
        self._session = load_session(KOKORO, model_dir, threads=min(2, os.cpu_count() or 1), quantised=True)
        self._options = shrinking()
        self._phoneme_ids = load_phoneme_ids(model_dir)
        self._styles = styles
        self._reader = MandarinReader(english)

    def with_styles(self, styles: Styles) -> "KokoroVoice":
        """Return another voice of the same model, which uses no further memory for the model."""
        other = copy.copy(self)
        other._styles = styles  # noqa: SLF001 - it is of this class
        return other

    def synthesize(self, text: str, speed: float = 1.0) -> Waveform:
        """Return the audio of a piece of text of at most `LONGEST` characters; empty if nothing in it can be spoken."""
        phonemes = self._reader.phonemes(text)
        ids = [self._phoneme_ids[symbol] for symbol in phonemes if symbol in self._phoneme_ids][: _LENGTHS - 1]
        if not any(symbol.isalpha() for symbol in phonemes):
            return np.zeros(0, np.float32)
        inputs = {
            "tokens": np.array([[0, *ids, 0]], np.int64),
            "style": self._styles[len(ids)].astype(np.float32),
            "speed": np.full(1, speed, np.float32),
        }
        return self._session.run(None, inputs, self._options)[0]


def load_styles(name: str, model_dir: Path | None = None) -> Styles:
    """Return the style vectors of a voice.

    Args:
        name: Of the voice.
        model_dir: Folder with model files to use instead of those in the Python packages.

    Raises:
        ConfigError: There is no such voice, or it cannot be read.
    """
    path = find_voice(name, model_dir)
    try:
        styles: Styles = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"voice {name} cannot be read: {error}") from error
    if styles.size != _LENGTHS * _STYLE:
        raise ConfigError(f"voice {name} has the shape {styles.shape}, not ({_LENGTHS}, {_STYLE})")
    return styles.reshape(_LENGTHS, 1, _STYLE)

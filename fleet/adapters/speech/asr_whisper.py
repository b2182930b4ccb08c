"""Recognition with Whisper on CTranslate2, offline: the base model unless `FLEET_MODEL_DIR` has another."""

import math
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fleet.adapters.speech import asr_windows, whisper_mel, whisper_text
from fleet.adapters.speech.command_words import CommandWords
from fleet.adapters.speech.fair_engine import FairEngine
from fleet.adapters.speech.model_files import WHISPER_CONFIG, WHISPER_MODEL, WHISPER_VOCABULARY, opened, require
from fleet.adapters.speech.simplified import simplify
from fleet.core.ports import Transcript
from fleet.core.text import phantoms
from fleet.ground.errors import ConfigError
from fleet.ground.metrics import turns

BEAM = 3
"""Width of the beam search. Five made as many errors in 252 English recordings, clean to 0 dB, and took 20 ms more."""
BEAM_OF_COMMANDS = 8
"""The same where `CommandWords` chooses from its texts."""
QUEUE = 16
"""Utterances that wait for the thread."""
TIMEOUT = 20.0
"""Longest wait for one window, in seconds, with the time in the queue."""
SHORTEST_BYTES = 3_200
"""0.1 s; shorter audio is not an utterance."""

PROMPTS = {"zh": "请打开灯，调低音量，播放音乐，设置闹钟。"}
"""Without this prompt, Whisper mostly writes Traditional characters without punctuation. The prompt is short, because
its words leak into transcripts of bad audio."""

_NO_SPEECH = 0.6
_LOW_SCORE = -0.8
"""Bounds between noise and speech. Measured: silence, noise and clicks have at least 0.73 and at most -0.96, speech at
most 0.48 and at least -0.5."""
_TOKENS_FREE = 30
_TOKENS_A_SECOND = 9
"""A transcript has at most `_TOKENS_FREE` tokens and 9 more per second of audio. Fast speech has about 8 per second; a
transcript with more repeats itself."""
_CONTEXT = 448
"""The model's positions: the most tokens of prompt and text together."""
SHORTEST_WINDOW, LONGEST_WINDOW = 18.0, 28.0
"""Seconds of the windows into which a long utterance is cut; Whisper's own limit is 30 s."""

_WINDOWS = {"en": 8.0}
"""Shortest windows of languages that do with less than `whisper_mel.SHORTEST_WINDOW` (docs/adr/0006-offline-speech.md).
Encoding takes time in proportion to it."""
_LIKELY = {"en": 0.85, "zh": 0.7}
"""Confidence from which an expected language was spoken, if the text is in its script. Read as the other language,
recordings have less, or the script of their own. Below it the language is detected."""
_HAN = re.compile(r"[\u4e00-\u9fff]")
_SECONDS_A_SECOND = 0.07
"""Time that a second of audio takes, on one core of a server."""

_LANGUAGE = re.compile(r"<\|[a-z]{2,3}\|>")
_FILES = {"model.bin": WHISPER_MODEL, "config.json": WHISPER_CONFIG, "vocabulary.txt": WHISPER_VOCABULARY}


@dataclass(frozen=True, slots=True)
class _Model:
    engine: Any
    """A `ctranslate2.models.Whisper`, which has no types."""
    array: Any
    """Makes a `ctranslate2.StorageView` from an array without copying it."""
    prompts: dict[str, list[str]]
    """The tokens before the transcript, for each language that the model knows."""


class WhisperAsr:
    """Recognises one utterance after another in one thread. Making one blocks for 1-2 s.

    Args:
        languages: ISO 639-1 codes to choose from; with a single one, no language is detected.
        model_dir: Folder with model files to use instead of those in the Python packages.
        limit: Longest wait for one window, in seconds, with the time in the queue.

    Raises:
        ConfigError: A file or package is missing, or the model does not know a language.
    """

    def __init__(self, languages: Sequence[str], model_dir: Path | None = None, limit: float = TIMEOUT) -> None:
        self._model = _load(tuple(languages), model_dir)
        self._languages = tuple(languages)
        self._words = CommandWords() if "zh" in languages else None
        self._limit = limit
        self._engine = FairEngine("asr", threads=1, queue=QUEUE)
        # The first run is slow. Run it now, so that no user waits for it.
        self._transcribe(bytes(whisper_mel.RATE * 2))

    @property
    def has_room(self) -> bool:
        """Whether more than half of the engine's places are free."""
        return self._engine.has_room

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        """Return what was said; see `fleet.core.ports.Asr`. A long utterance is recognised window by window."""
        said = Transcript("")
        for window in asr_windows.split(pcm, SHORTEST_WINDOW, LONGEST_WINDOW):
            if len(window) >= SHORTEST_BYTES:
                takes = len(window) / 2 / whisper_mel.RATE * _SECONDS_A_SECOND
                work = partial(self._transcribe, window, language, expected)
                part = await self._engine.run(work, self._limit, takes)
                if part is None:
                    turns.phantoms.add("prompt")
                else:
                    said = _joined(said, part)
        return said

    async def aclose(self) -> None:
        """Refuse further work."""
        self._engine.close()

    def _transcribe(self, pcm: bytes, spoken: str = "", expected: str = "") -> Transcript | None:
        """Return what was said; None if the text comes from the prompt. Runs in the thread."""
        seconds = min(len(pcm) / 2 / whisper_mel.RATE, whisper_mel.LONGEST)
        given = self._given(spoken)
        language = given or (expected if expected in self._languages else "")
        encoded = self._encode(pcm, language)
        text, confidence = self._text(encoded, language, seconds) if language else ("", 0.0)
        if not given and not _is_likely(language, text, confidence):
            detected = self._detect(encoded)
            if detected != language:
                if _window(detected) > _window(language):
                    encoded = self._encode(pcm, detected)
                language = detected
                text, confidence = self._text(encoded, language, seconds)
        if phantoms.is_made_of(text, PROMPTS.get(language, "")):
            # Was it said, or did it leak from the prompt? Speech is recognised without the prompt, too.
            again, _ = self._text(encoded, language, seconds, _start(language))
            if phantoms.reduce(again) != phantoms.reduce(text):
                return None
        return Transcript(text, language, confidence) if text else Transcript("")

    def _given(self, spoken: str) -> str:
        """Return the language that no detection may change, empty if there is none."""
        if spoken in self._model.prompts:
            return spoken
        return self._languages[0] if len(self._languages) == 1 else ""

    def _encode(self, pcm: bytes, language: str) -> Any:
        """Return what both the language and the text are read from."""
        whisper = self._model.engine
        return whisper.encode(self._model.array(whisper_mel.log_mel(pcm, whisper.n_mels, _window(language))))

    def _text(self, encoded: Any, language: str, seconds: float, prompt: list[str] | None = None) -> tuple[str, float]:
        """Return what the decoder makes of encoded audio, empty if that is noise, and how sure it is (0 to 1)."""
        prompt = prompt or self._model.prompts[language]
        if language == "zh" and self._words is None:
            self._words = CommandWords()
        words = self._words if language == "zh" else None
        beam = BEAM_OF_COMMANDS if words else BEAM
        found = self._model.engine.generate(
            encoded,
            [prompt],
            beam_size=beam,
            num_hypotheses=beam if words else 1,
            # CTranslate2 reserves half of `max_length` for the prompt and writes at most the other half.
            max_length=2 * min(_TOKENS_FREE + int(seconds * _TOKENS_A_SECOND), _CONTEXT - len(prompt)),
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        if found.no_speech_prob > _NO_SPEECH and found.scores[0] < _LOW_SCORE:
            return "", 0.0
        texts = [whisper_text.decode(tokens).strip() for tokens in found.sequences]
        text = words.choose([*zip(map(simplify, texts), found.scores, strict=True)]) if words else texts[0]
        return text, math.exp(found.scores[0])

    def _detect(self, encoded: Any) -> str:
        ranked = (token.strip("<|>") for token, _ in self._model.engine.detect_language(encoded)[0])
        return next((code for code in ranked if code in self._languages), self._languages[0])


def _window(language: str) -> float:
    return _WINDOWS.get(language, whisper_mel.SHORTEST_WINDOW)


def _is_likely(language: str, text: str, confidence: float) -> bool:
    return confidence >= _LIKELY.get(language, math.inf) and bool(_HAN.search(text)) == (language == "zh")


def _joined(before: Transcript, after: Transcript) -> Transcript:
    if not before.text or not after.text:
        return after if after.text else before
    gap = "" if after.language == "zh" else " "
    return Transcript(before.text + gap + after.text, before.language, after.confidence)


def _load(languages: tuple[str, ...], model_dir: Path | None) -> _Model:
    ctranslate2 = require("ctranslate2")
    with _folder(model_dir) as folder:
        vocabulary = {token: rank for rank, token in enumerate(_lines(folder / "vocabulary.txt"))}
        unknown = [code for code in languages if f"<|{code}|>" not in vocabulary]
        if unknown or not languages:
            raise ConfigError(f"Whisper does not know the language {', '.join(unknown) or '(none given)'}")
        try:
            engine = ctranslate2.models.Whisper(
                str(folder), device="cpu", compute_type="int8", inter_threads=1, intra_threads=1
            )
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"{WHISPER_MODEL.name} cannot be loaded: {error}") from error
    codes = (token[2:-2] for token in vocabulary if _LANGUAGE.fullmatch(token))
    prompts = {code: _prompt(code, vocabulary) for code in codes}
    return _Model(engine, ctranslate2.StorageView.from_array, prompts)


@contextmanager
def _folder(model_dir: Path | None) -> Iterator[Path]:
    """Yield a folder with the file names that CTranslate2 requires.

    The files are links. CTranslate2 also accepts a model as bytes, but then keeps the 140 MB in memory for ever.
    """
    with (
        tempfile.TemporaryDirectory(prefix="fleet-whisper-") as name,
        opened(WHISPER_MODEL, model_dir) as model,
        opened(WHISPER_CONFIG, model_dir) as config,
        opened(WHISPER_VOCABULARY, model_dir) as vocabulary,
    ):
        folder = Path(name)
        for link, target in zip(_FILES, (model, config, vocabulary), strict=True):
            (folder / link).symlink_to(target.absolute())
        yield folder


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{WHISPER_VOCABULARY.name} cannot be read: {error}") from error


def _prompt(language: str, vocabulary: dict[str, int]) -> list[str]:
    before = whisper_text.encode(PROMPTS[language], vocabulary) if language in PROMPTS else []
    return ["<|startofprev|>", *before, *_start(language)] if before else _start(language)


def _start(language: str) -> list[str]:
    return ["<|startoftranscript|>", f"<|{language}|>", "<|transcribe|>", "<|notimestamps|>"]

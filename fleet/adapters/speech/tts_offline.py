"""The offline voices as one `Tts`: hibari for English, Kokoro for Chinese."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol

from fleet.adapters.speech import tts_hibari, tts_kokoro
from fleet.adapters.speech.clauses import split_clauses
from fleet.adapters.speech.engines import VOICE_NICENESS
from fleet.adapters.speech.fair_engine import FairEngine
from fleet.adapters.speech.prebuffer import PrebufferEstimator
from fleet.adapters.speech.waveform import Waveform, silence, to_pcm, trim_silence
from fleet.core.ports import USUAL_VOICE, VoiceOptions
from fleet.ground.errors import ConfigError

log = logging.getLogger(__name__)

RATE = 24_000
QUEUE = 32
TIMEOUT = 20.0
LANGUAGES = ("en", "zh")

_KEPT = int(0.06 * RATE)
_LEAD = int(0.01 * RATE)
"""Silence before a sentence: its listener waits."""
_AFTER = (_KEPT - _LEAD) / RATE
"""Added after a sentence, so that the pause before the next one is as long as without `_LEAD`."""
_SENTENCE_PAUSE = 0.18
_CLAUSE_PAUSE = 0.06
_HAN = re.compile(r"[㐀-䶿一-鿿]")
_SENTENCE_END = re.compile(r"[。！？!?.…][”’\"')）」』]*\s*$")


class _Voice(Protocol):
    def synthesize(self, text: str, speed: float) -> Waveform: ...


@dataclass(frozen=True, slots=True)
class _Speaker:
    """A voice with its gain, and how its text is cut (`split_clauses`)."""

    voice: _Voice
    first: int
    growth: float
    longest: int
    gain: float
    prebuffer: PrebufferEstimator = field(default_factory=PrebufferEstimator, compare=False)


_MEASURED = {"en": "The light is on now.", "zh": "现在电量是百分之八十。"}
"""Spoken once at start, to measure the speed of this machine."""
_OPENINGS = ("好的，", "抱歉，", "我看看，")
"""Spoken once at start: the voice is slow at first, and these begin most Chinese answers."""
_LONGEST_CACHED = 6
"""Characters of a piece whose audio is cached: many answers begin with "好的，" or similar."""
_MOST_CACHED = 100


class OfflineTts:
    """Synthesises sentences piece by piece in one thread; pieces of several sentences take turns.

    Args:
        zh_voice: Name of the Chinese voice.
        model_dir: Folder with model files to use instead of those in the Python packages.
        limit: Longest wait for one piece, in seconds, with the time in the queue.
        expected: Languages of the users. Without Chinese, its voice speaks nothing at start, and its first piece is
            slow: that takes 2 s of a core, more than all the rest.

    Raises:
        ConfigError: A model, a voice or a package is missing. Blocks for 1-4 s.
    """

    def __init__(
        self,
        zh_voice: str,
        model_dir: Path | None = None,
        limit: float = TIMEOUT,
        expected: Collection[str] = LANGUAGES,
    ) -> None:
        self._limit, self._zh_voice, self._model_dir = limit, zh_voice, model_dir
        # Loaded first, so that a wrong name is reported before the models are loaded.
        styles = tts_kokoro.load_styles(zh_voice, model_dir)
        english = tts_hibari.HibariVoice(model_dir)
        chinese = tts_kokoro.KokoroVoice(styles, english.phonemes, model_dir)
        self._english = _Speaker(english, tts_hibari.LONGEST, 1.0, tts_hibari.LONGEST, tts_hibari.GAIN)
        self._kokoro = chinese
        self._chinese = {zh_voice: _chinese_speaker(chinese)}
        self._engine = FairEngine("tts", threads=1, queue=QUEUE, niceness=VOICE_NICENESS)
        self._cache: dict[tuple[_Speaker, str, int, float], bytes] = {}
        # The first run is slow. Run it now, so that no user waits for it.
        self._synthesize(self._english, "Okay,")
        self._measure(self._english, _MEASURED["en"])
        if "zh" in expected:
            for opening in _OPENINGS:
                self._synthesize(self._chinese[zh_voice], opening)
            self._measure(self._chinese[zh_voice], _MEASURED["zh"])

    @property
    def sample_rate(self) -> int:
        return RATE

    async def speak(self, text: str, language: str, voice: VoiceOptions = USUAL_VOICE) -> AsyncGenerator[bytes, None]:
        """Yield the audio of a sentence; see `fleet.core.ports.Tts`.

        A Chinese voice reads Chinese, and every text with Hanzi, whatever `language` says. The English voice reads all
        other languages.
        """
        chinese = language == "zh" or _HAN.search(text)
        speaker = await self._find_chinese(voice.name) if chinese else self._english
        pieces = split_clauses(text, speaker.first, speaker.growth, speaker.longest)
        started = False
        held = bytearray()
        for place, piece in enumerate(pieces):
            pcm = await self._piece(speaker, piece, _LEAD if place == 0 else _KEPT, voice.speed)
            left = [len(further) for further in pieces[place + 1 :]]
            held += pcm + silence(_pause(piece) if left else _AFTER, RATE) if pcm else b""
            # The estimator knows the usual speed; faster speech is shorter.
            seconds = len(held) / (2 * RATE) / max(voice.speed, 1.0)
            if held and (started or speaker.prebuffer.can_start(seconds, left)):
                started = True
                yield bytes(held)
                held.clear()
        if not started:
            log.warning("sentence has nothing to speak", extra={"characters": len(text), "pii": text})

    async def _find_chinese(self, name: str) -> _Speaker:
        """Return a Chinese voice; the usual one if there is none of this name."""
        usual = self._chinese[self._zh_voice]
        if not name or name in self._chinese:
            return self._chinese.get(name, usual)
        try:
            styles = await asyncio.to_thread(tts_kokoro.load_styles, name, self._model_dir)
        except ConfigError as error:
            log.warning("no such voice", extra={"reason": str(error)})
            return usual
        other = _chinese_speaker(self._kokoro.with_styles(styles), usual.prebuffer)
        return self._chinese.setdefault(name, other)

    async def _piece(self, speaker: _Speaker, piece: str, lead: int, speed: float) -> bytes:
        clock = asyncio.get_running_loop().time
        begun = clock()
        pcm = await self._engine.run(partial(self._synthesize, speaker, piece, lead, speed), self._limit)
        if len(piece) > _LONGEST_CACHED and speed == USUAL_VOICE.speed:
            speaker.prebuffer.record(len(piece), clock() - begun, len(pcm) / (2 * RATE))
        return pcm

    def _measure(self, speaker: _Speaker, piece: str) -> None:
        begun = monotonic()
        pcm = self._synthesize(speaker, piece)
        speaker.prebuffer.record(len(piece), monotonic() - begun, len(pcm) / (2 * RATE))

    def _synthesize(self, speaker: _Speaker, piece: str, lead: int = _LEAD, speed: float = 1.0) -> bytes:
        """Return the audio of a piece with so many samples before its voice; that of short pieces is cached."""
        cached = self._cache.get((speaker, piece, lead, speed))
        if cached is not None:
            return cached
        pcm = _render(speaker, piece, lead, speed)
        if len(piece) <= _LONGEST_CACHED and len(self._cache) < _MOST_CACHED:
            self._cache[speaker, piece, lead, speed] = pcm
        return pcm

    async def aclose(self) -> None:
        """Refuse further work."""
        self._engine.close()


def _chinese_speaker(voice: tts_kokoro.KokoroVoice, prebuffer: PrebufferEstimator | None = None) -> _Speaker:
    first, growth, longest, gain = tts_kokoro.FIRST, tts_kokoro.GROWTH, tts_kokoro.LONGEST, tts_kokoro.GAIN
    return _Speaker(voice, first, growth, longest, gain, prebuffer or PrebufferEstimator())


def _render(speaker: _Speaker, piece: str, lead: int, speed: float) -> bytes:
    return to_pcm(trim_silence(speaker.voice.synthesize(piece, speed), _KEPT, lead), speaker.gain)


def _pause(piece: str) -> float:
    return _SENTENCE_PAUSE if _SENTENCE_END.search(piece) else _CLAUSE_PAUSE

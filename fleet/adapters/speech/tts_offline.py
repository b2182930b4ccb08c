"""The offline voices behind one port: English by hibari, Chinese by Kokoro."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol

from fleet.adapters.speech import tts_hibari, tts_kokoro
from fleet.adapters.speech.clauses import split_clauses
from fleet.adapters.speech.engines import Engine
from fleet.adapters.speech.head_start import HeadStart
from fleet.adapters.speech.waveform import Waveform, silence, to_pcm, trim_silence

log = logging.getLogger(__name__)

RATE = 24_000
QUEUE = 32
TIMEOUT = 20.0
LANGUAGES = ("en", "zh")

_KEPT = int(0.06 * RATE)
_SENTENCE_PAUSE = 0.18
_CLAUSE_PAUSE = 0.06
_HAN = re.compile(r"[㐀-䶿一-鿿]")
_SENTENCE_END = re.compile(r"[。！？!?.…][”’\"')）」』]*\s*$")


class _Voice(Protocol):
    def synthesize(self, text: str) -> Waveform: ...


@dataclass(frozen=True, slots=True)
class _Speaker:
    """A voice and how its text is cut: first piece, growth, longest piece in characters; and its gain."""

    voice: _Voice
    first: int
    growth: float
    longest: int
    gain: float
    head_start: HeadStart = field(default_factory=HeadStart, compare=False)


_MEASURED = {"en": "The light is on now.", "zh": "现在电量是百分之八十。"}
"""Said once, so that it is known how fast this machine speaks."""
_OPENING = 6
"""Characters of a piece that is kept: "好的，" and the like."""
_OPENINGS = 100


class OfflineTts:
    """Speaks sentences piece by piece in one thread; pieces of several sentences take turns.

    Args:
        zh_voice: Name of the Chinese voice.
        model_dir: Folder with files that replace the wheels' own.

    Raises:
        ConfigError: A model, a voice or a package is missing. Blocks for 3-4 s.
    """

    def __init__(self, zh_voice: str, model_dir: Path | None = None) -> None:
        # First, as whoever set a wrong name shall not wait for the models.
        styles = tts_kokoro.load_styles(zh_voice, model_dir)
        english = tts_hibari.HibariVoice(model_dir)
        chinese = tts_kokoro.KokoroVoice(styles, english.phonemes, model_dir)
        self._english = _Speaker(english, tts_hibari.LONGEST, 1.0, tts_hibari.LONGEST, tts_hibari.GAIN)
        self._chinese = _Speaker(chinese, tts_kokoro.FIRST, tts_kokoro.GROWTH, tts_kokoro.LONGEST, tts_kokoro.GAIN)
        self._engine = Engine("tts", threads=1, queue=QUEUE)
        self._openings: dict[tuple[_Speaker, str], bytes] = {}
        # The first run is slow, so nobody shall wait for it.
        self._say(self._english, "Okay,")
        for opening in ("好的，", "抱歉，", "我看看，"):
            self._say(self._chinese, opening)
        for speaker, piece in ((self._english, _MEASURED["en"]), (self._chinese, _MEASURED["zh"])):
            begun = monotonic()
            pcm = self._say(speaker, piece)
            speaker.head_start.learn(len(piece), monotonic() - begun, len(pcm) / (2 * RATE))

    @property
    def sample_rate(self) -> int:
        return RATE

    async def speak(self, text: str, language: str) -> AsyncGenerator[bytes, None]:
        """Yield the audio of a sentence; see `fleet.core.ports.Tts`.

        Every language but Chinese is read by the English voice; text with Hanzi by the Chinese one, whatever it claims.
        """
        speaker = self._chinese if language == "zh" or _HAN.search(text) else self._english
        pieces = split_clauses(text, speaker.first, speaker.growth, speaker.longest)
        heard = False
        held = bytearray()
        for place, piece in enumerate(pieces):
            pcm = await self._piece(speaker, piece)
            left = [len(further) for further in pieces[place + 1 :]]
            held += pcm if not left or not pcm else pcm + silence(_pause(piece), RATE)
            if held and (heard or speaker.head_start.suffices(len(held) / (2 * RATE), left)):
                heard = True
                yield bytes(held)
                held.clear()
        if not heard:
            log.warning("nothing in a sentence can be read aloud", extra={"characters": len(text), "pii": text})

    async def _piece(self, speaker: _Speaker, piece: str) -> bytes:
        clock = asyncio.get_running_loop().time
        begun = clock()
        pcm = await self._engine.run(partial(self._say, speaker, piece), TIMEOUT)
        if len(piece) > _OPENING:
            speaker.head_start.learn(len(piece), clock() - begun, len(pcm) / (2 * RATE))
        return pcm

    def _say(self, speaker: _Speaker, piece: str) -> bytes:
        """Return a piece's audio; that of short ones, with which answers so often begin, is kept."""
        kept = self._openings.get((speaker, piece))
        if kept is not None:
            return kept
        pcm = _render(speaker, piece)
        if len(piece) <= _OPENING and len(self._openings) < _OPENINGS:
            self._openings[speaker, piece] = pcm
        return pcm

    async def aclose(self) -> None:
        """Refuse further work."""
        self._engine.close()


def _render(speaker: _Speaker, piece: str) -> bytes:
    return to_pcm(trim_silence(speaker.voice.synthesize(piece), _KEPT), speaker.gain)


def _pause(piece: str) -> float:
    return _SENTENCE_PAUSE if _SENTENCE_END.search(piece) else _CLAUSE_PAUSE

"""`scripts/bench turn-ends`: how often a pause inside a command ends it, and how long finished commands wait.

Commands of the offline voices and recordings are cut at quiet points, and a pause with room noise is put in. Detector,
recogniser, turn model and rule are those of an edge; only time is not real: the two verdicts come `verdict_ms` after
the pause is noticed, as on a machine that does nothing else.
"""

import asyncio
import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.asr_whisper import WhisperAsr
from fleet.adapters.speech.pcm import Resampler
from fleet.adapters.speech.tts_offline import OfflineTts
from fleet.adapters.speech.turn_smart import SmartTurn
from fleet.adapters.speech.vad_silero import WINDOW, SileroVad, VadState
from fleet.core.ports import ASR_RATE, Transcript
from fleet.core.turn_end import LATEST_MS, TurnEnd
from fleet.ground.settings import load
from fleet.roles.edge.listening.utterance_collector import PausedUtterance, Utterance, UtteranceCollector
from fleet.workbench.bench.experiment import Experiment, Progress
from tests.benchmarks.commands import COMMANDS

PAUSES = (300, 500, 700, 1000)
LONG_WAIT_MS = 600.0
RECORDINGS = Path(__file__).parents[2] / "fleet" / "workbench" / "demo" / "recordings"
_NOISE = 30.0
"""Level of the room, of 32767: -61 dBFS."""
_AUDIBLE = 200.0
_FRAME_MS = 60
_HEARD_MS = 300
"""The voice after a pause is heard by then; how such a clip ends is not asked."""
_BEFORE_MS, _AFTER_MS = 500, 2500
_CUTS = ((0.35, 0.55), (0.55, 0.8))
"""Parts of a command in whose quietest point a pause is put."""
_SYNTHESIS_SECONDS = 600.0

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Command:
    language: str
    name: str
    audio: Samples
    """At 16 kHz, in units of 16-bit samples, without silence at its ends."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one clip; `pause_ms` is 0 for a command without a pause."""

    language: str
    name: str
    pause_ms: int
    cut_off: bool
    wait_ms: float
    """From the last sound to the end of a command without a pause."""
    prepared: int
    """Answers that were prepared and withdrawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEndsExperiment(Experiment[list[Tried]]):
    """The plan.

    Args:
        half: Which commands: those by which the thresholds were chosen, or the others.
        count: Commands of each language.
        folder: Further recordings, `en_….wav` and `zh_….wav` with 16 kHz; then only these.
        verdict_ms: From the pause to the verdicts.
    """

    name: ClassVar[str] = "turn-ends"
    half: str
    count: int
    folder: Path | None
    verdict_ms: float

    async def measure(self, progress: Progress) -> list[Tried]:
        """Try every command without and with pauses."""
        ears, found = _Ears(), list[Tried]()
        commands = await self._commands(progress)
        for number, command in enumerate(commands, 1):
            progress(f"{number} of {len(commands)}: {command.name}")
            for pause_ms, parts in _clips(command):
                found.append(await asyncio.to_thread(self._try, ears, command, pause_ms, parts))
        await ears.close()
        return found

    async def _commands(self, progress: Progress) -> list[Command]:
        if self.folder:
            return [_read(path) for path in sorted(self.folder.glob("*.wav"))]
        progress("speaking the commands")
        recorded = [_read(path) for path in sorted(RECORDINGS.glob("*.wav"))] if self.half == "choose" else []
        return [*recorded, *await _spoken(self.half, self.count)]

    def _try(self, ears: "_Ears", command: Command, pause_ms: int, parts: Sequence[Samples]) -> Tried:
        """Play a clip to the rule."""
        settings = load()
        rule = TurnEnd(settings.endpoint_ms, settings.endpoint_max_ms)
        collector = UtteranceCollector(LATEST_MS, settings.pause_ms)
        audio, sounds = _with_room(parts, pause_ms)
        verdict_at, verdict, tentative, withdrawn = 0.0, None, False, 0
        for now, frame, speech in ears.frames(audio):
            collected = collector.add(frame, speech, now / 1000)
            if isinstance(collected, PausedUtterance):
                verdict_at, verdict = now + self.verdict_ms, collected.so_far
            elif collected is True:
                withdrawn += tentative
                verdict, tentative = None, False
                rule.note_voice()
            elif isinstance(collected, Utterance):
                return _tried(command, pause_ms, now, sounds, withdrawn)
            if pause_ms and now >= sounds[-1][0] + _HEARD_MS:
                return _tried(command, pause_ms, now, sounds, withdrawn)
            if verdict and now >= verdict_at:
                probability, text = ears.judge(verdict.pcm, command.language)
                verdict = None
                rule.judge(probability)
                rule.read(text)
            decision = rule.decide(collector.silence_ms) if collector.recording else "wait"
            if decision in ("commit", "keep"):
                return _tried(command, pause_ms, now, sounds, withdrawn)
            if decision == "tentative" and not tentative:
                tentative = True
                rule.note_tentative()
        raise AssertionError(f"{command.name}: no end")


class _Ears:
    """The engines; what was judged once is remembered, since clips with the same cut begin alike."""

    def __init__(self) -> None:
        self._vad, self._turn, self._asr = SileroVad.load(None), SmartTurn(), WhisperAsr(("en", "zh"))
        self._known: dict[bytes, tuple[float, Transcript]] = {}

    def judge(self, pcm: bytes, expected: str) -> tuple[float, Transcript]:
        if pcm not in self._known:
            # Directly, because a busy machine may take longer than users would wait.
            self._known[pcm] = self._turn._judge(pcm), self._asr._transcribe(pcm, expected=expected)
        return self._known[pcm]

    def frames(self, audio: Samples) -> Iterator[tuple[float, bytes, float]]:
        """Yield the end of each frame in milliseconds, its PCM, and the probability of speech."""
        state, size, rest, speech = VadState(), ASR_RATE * _FRAME_MS // 1000, np.zeros(0, np.float32), 0.0
        for number in range(len(audio) // size):
            frame = audio[number * size : (number + 1) * size]
            rest = np.concatenate((rest, frame / np.float32(32768)))
            while len(rest) >= WINDOW:
                (speech,) = self._vad.probabilities([(state, rest[:WINDOW])])
                rest = rest[WINDOW:]
            yield (number + 1) * _FRAME_MS, frame.astype("<i2").tobytes(), speech

    async def close(self) -> None:
        await self._turn.aclose()
        await self._asr.aclose()


def _tried(command: Command, pause_ms: int, now: float, sounds: Sequence[tuple[float, float]], withdrawn: int) -> Tried:
    ended = max(end for begin, end in sounds if begin <= now)
    return Tried(command.language, command.name, pause_ms, now < sounds[-1][0], now - ended, withdrawn)


def _clips(command: Command) -> Iterator[tuple[int, Sequence[Samples]]]:
    yield 0, [command.audio]
    for low, high in _CUTS:
        at = _quietest(command.audio, low, high)
        for pause_ms in PAUSES:
            yield pause_ms, [command.audio[:at], command.audio[at:]]


def _quietest(audio: Samples, low: float, high: float) -> int:
    first, last = int(len(audio) * low) // 160, int(len(audio) * high) // 160
    return (first + int(np.argmin(_levels(audio)[first:last]))) * 160


def _levels(audio: Samples) -> Samples:
    """Return the level of every 10 ms, smoothed over 40 ms."""
    whole = len(audio) // 160
    levels = np.sqrt(np.mean(audio[: whole * 160].reshape(whole, 160) ** 2, axis=1))
    smooth: Samples = np.convolve(levels, np.ones(4) / 4, "same").astype(np.float32)
    return smooth


def _with_room(parts: Sequence[Samples], pause_ms: int) -> tuple[Samples, list[tuple[float, float]]]:
    """Return the clip in a room, and where its parts begin and end, in milliseconds."""
    pieces, sounds, at = [_silence(_BEFORE_MS)], list[tuple[float, float]](), float(_BEFORE_MS)
    for part in parts:
        if sounds:
            pieces.append(_silence(pause_ms))
            at += pause_ms
        sounds.append((at, at + len(part) * 1000 / ASR_RATE))
        pieces.append(part)
        at = sounds[-1][1]
    audio = np.concatenate([*pieces, _silence(_AFTER_MS)])
    noise = np.random.default_rng(7).normal(0, _NOISE, len(audio))
    return np.clip(audio + noise, -32768, 32767).astype(np.float32), sounds


def _silence(ms: float) -> Samples:
    return np.zeros(int(ms * ASR_RATE / 1000), np.float32)


def _read(path: Path) -> Command:
    with wave.open(str(path)) as file:
        if file.getframerate() != ASR_RATE:
            raise ValueError(f"{path.name} has not {ASR_RATE} Hz")
        return Command(path.name[:2], path.stem, _trim(np.frombuffer(file.readframes(file.getnframes()), "<i2")))


async def _spoken(half: str, count: int) -> list[Command]:
    voices = [OfflineTts(name, limit=_SYNTHESIS_SECONDS) for name in ("zf_xiaoxiao", "zm_yunxi")]
    made: list[Command] = []
    for language, texts in COMMANDS[half].items():
        for number, text in enumerate(texts[:count]):
            tts = voices[number % 2]
            resampler = Resampler(tts.sample_rate, ASR_RATE)
            pcm = b"".join([resampler.feed(piece) async for piece in tts.speak(text, language)]) + resampler.flush()
            made.append(Command(language, text, _trim(np.frombuffer(pcm, "<i2"))))
    return made


def _trim(samples: NDArray[np.int16]) -> Samples:
    audio = samples.astype(np.float32)
    heard = np.flatnonzero(_levels(audio) > _AUDIBLE)
    return audio[heard[0] * 160 : (heard[-1] + 1) * 160]

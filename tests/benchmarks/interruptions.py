"""`scripts/bench interruptions`: what speech over an answer does to it, as the device of a realtime build hears it.

A real server with its offline engines answers a simulated device with 20 s of speech. Over it sound noises and
backchannels, after which the answer must go on without a lost word, and words, which must silence it.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import inf
from pathlib import Path
from typing import ClassVar

from fleet.adapters.speech.asr_whisper import WhisperAsr
from fleet.adapters.speech.pcm import duration, resample
from fleet.adapters.speech.tts_offline import OfflineTts
from fleet.core.own_words import split
from fleet.core.ports import Tts
from fleet.ground.errors import Unavailable
from fleet.workbench.bench.chat_http import serving
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.local_servers.log_line import LogLine
from fleet.workbench.local_servers.ports import choose_ports
from fleet.workbench.local_servers.server import run_server, settings_for
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.records.turns import Turn
from tests.benchmarks.overlaps import BACKCHANNELS, INTERRUPTIONS, Overlap, noises, spoken, texts_of
from tests.benchmarks.story_model import QUESTIONS, REPLIES, STORIES, StoryModel, story

MAC = "02:f1:ee:70:be:31"
GO_ON_SECONDS = 1.2
SENT_SECONDS = 0.35
SILENT_SECONDS = 0.65
_LEAD_IN_SECONDS = 2.0
"""From the begin of an answer to the first sound over it."""
_APART_SECONDS = 4.0
_EACH = 4
"""Sounds over one answer."""
_REPLY_SECONDS = 30.0
_TURN_SECONDS = 120.0
_GAP_SECONDS = 0.03
"""A silence between two packets from which on the answer was held."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A noise or backchannel, and what the device heard of the answer around it. Times are in seconds."""

    kind: str
    name: str
    went_on: bool
    gap: float
    """The longest silence of the answer that it caused."""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Words over an answer. Times are in seconds from their first sound, on the device's clock."""

    name: str
    sent: float
    """To the last packet of the answer."""
    silent: float
    """To the last sound of the answer."""
    answered: bool
    understood: str


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer over which noises and backchannels sounded."""

    language: str
    words: int
    """Words (in Chinese characters) that recognition finds in the answer undisturbed."""
    lost: int
    """Those of them that it does not find in the disturbed one."""
    missing_packets: int


@dataclass(frozen=True, slots=True)
class InterruptionFigures:
    """All that was measured."""

    passed: Sequence[Passed]
    answers: Sequence[Heard]
    interrupted: Sequence[Interrupted]
    verdicts: dict[str, int]
    """Verdicts of the server, from its log."""
    violations: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptionsExperiment(Experiment[InterruptionFigures]):
    """Noises and backchannels, then words, `count` of each, over long answers."""

    name: ClassVar[str] = "interruptions"

    count: int

    async def measure(self, progress: Progress) -> InterruptionFigures:
        # Of a single sound over an answer, only one: a server takes seconds to be ready for Chinese.
        languages = list(STORIES)[: self.count]
        progress("loading the speech models")
        tts = await asyncio.to_thread(OfflineTts, "zf_xiaoxiao", expected=languages)
        progress("speaking what is said over answers")
        passing = await _passing(tts, self.count)
        words = await spoken(tts, "words", texts_of(INTERRUPTIONS, self.count))
        questions = {name: (await spoken(tts, "words", [(name, QUESTIONS[name])]))[0].pcm for name in languages}
        del tts
        verdicts: dict[str, int] = {}

        def count(line: LogLine) -> None:
            if line.message == "speech over the answer":
                verdict = line.text("verdict")
                verdicts[verdict] = verdicts.get(verdict, 0) + 1

        stories = {language: story(language, min(self.count, _EACH)) for language in STORIES}
        async with _stage(stories, questions, count, languages) as stage:
            answers = [passing[at : at + _EACH] for at in range(0, len(passing), _EACH)]
            told = [languages[number % len(languages)] for number in range(len(answers))]
            whole = {language: await stage.tell(language) for language in dict.fromkeys(told)}
            passed: list[Passed] = []
            disturbed: list[tuple[str, Turn]] = []
            for language, overlaps in zip(told, answers, strict=True):
                progress(f"noises and backchannels: {len(passed)} of {len(passing)}")
                turn, found = await stage.disturb(language, overlaps)
                disturbed.append((language, turn))
                passed += found
            interrupted = []
            for at, overlap in enumerate(words):
                progress(f"interruptions: {at} of {len(words)}")
                interrupted.append(await stage.interrupt(languages[at % len(languages)], overlap))
            violations = [f"{one.rule}: {one.detail}" for one in stage.device.report.violations]
        progress("recognising what the device heard")
        heard = await _transcribe(whole, disturbed)
        return InterruptionFigures(passed, heard, interrupted, verdicts, violations)


class _Stage:
    """A device before a running server, and the model behind that."""

    def __init__(
        self, device: SimDevice, model: StoryModel, stories: Mapping[str, str], questions: Mapping[str, bytes]
    ) -> None:
        self.device = device
        self._model = model
        self._stories = stories
        self._questions = questions

    async def tell(self, language: str) -> Turn:
        """Have a story told to its end."""
        self._model.text = self._stories[language]
        turn = await self.device.say(self._questions[language], _TURN_SECONDS)
        if turn.outcome != "answered":
            raise Unavailable(f"a question was not answered: {turn.outcome}")
        return turn

    async def disturb(self, language: str, overlaps: Sequence[Overlap]) -> tuple[Turn, list[Passed]]:
        """Have a story told, and let sounds come over it."""
        begun = []
        async with asyncio.TaskGroup() as group:
            telling = group.create_task(self.tell(language))
            turn = await self._speaking()
            await asyncio.sleep(_LEAD_IN_SECONDS)
            for overlap in overlaps:
                begun.append(self.device.talk_over(overlap.pcm))
                await asyncio.sleep(_APART_SECONDS)
        turn = telling.result()
        return turn, [passed_over(overlap, turn, voice.began) for overlap, voice in zip(overlaps, begun, strict=True)]

    async def interrupt(self, language: str, overlap: Overlap) -> Interrupted:
        """Have a story told, speak over it, and wait for the reply."""
        device = self.device
        async with asyncio.TaskGroup() as group:
            telling = group.create_task(self.tell(language))
            turn = await self._speaking()
            await asyncio.sleep(_LEAD_IN_SECONDS)
            self._model.text = REPLIES[language]
            before = len(device.turns.turns)
            voice = device.talk_over(overlap.pcm)
        turn = telling.result()
        later = device.turns.turns
        replied = await device.until(_REPLY_SECONDS, lambda: any(one.outcome == "answered" for one in later[before:]))
        began = voice.began or 0.0
        # What the device still had of the story may sound after the reply was announced.
        rest = [
            piece for one in later[before:] for piece in one.pieces if piece[0] < one.times.get("first packet", inf)
        ]
        at, pcm = [*turn.pieces, *rest][-1]
        return Interrupted(
            overlap.name,
            turn.times["last packet"] - began,
            at + duration(pcm, turn.sample_rate) - began,
            replied,
            str(device.journal.find("stt")[-1].detail["text"]),
        )

    async def _speaking(self) -> Turn:
        """Wait until the next answer sounds."""
        turns = self.device.turns
        known = len(turns.turns)
        if not await self.device.until(
            _TURN_SECONDS, lambda: len(turns.turns) > known and "first audible" in turns.turns[-1].times
        ):
            raise Unavailable("no answer begins")
        return turns.turns[-1]


@asynccontextmanager
async def _stage(
    stories: Mapping[str, str],
    questions: Mapping[str, bytes],
    on_line: Callable[[LogLine], None],
    languages: Sequence[str],
) -> AsyncIterator[_Stage]:
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
        folder = Path(name)
        async with serving(StoryModel()) as model:
            settings = settings_for(choose_ports(), folder / "data")
            settings |= {"llm_base_url": model.url, "llm_model": "bench", "metrics_port": 0}
            settings |= {"languages": ",".join(languages)}
            async with run_server(settings, folder, folder / "server.log", on_line) as server:
                device = SimDevice(find_profile("P3"), ota_url=server.ota_url, mac=MAC)
                async with device.running():
                    if not await device.wake():
                        raise Unavailable("the device could not open a session with the server")
                    yield _Stage(device, model, stories, questions)


async def _passing(tts: Tts, count: int) -> list[Overlap]:
    """Return noises and backchannels in turn."""
    rooms = noises(count // 2)
    people = await spoken(tts, "backchannel", texts_of(BACKCHANNELS, count - len(rooms)))
    found = [one for pair in zip(people, rooms, strict=False) for one in pair]
    return found + people[len(rooms) :]


def passed_over(overlap: Overlap, turn: Turn, began: float | None) -> Passed:
    """Return whether an answer went on after a sound over it that began at this time; None: it was never heard."""
    if began is None:
        return Passed(overlap.kind, overlap.name, went_on=False, gap=0.0)
    gap, end = 0.0, turn.pieces[0][0]
    for at, pcm in turn.pieces:
        if began < at < began + _APART_SECONDS and at - end > _GAP_SECONDS:
            gap = max(gap, at - end)
        end = at + duration(pcm, turn.sample_rate)
    return Passed(overlap.kind, overlap.name, end > began + _APART_SECONDS and gap <= GO_ON_SECONDS, gap)


async def _transcribe(whole: dict[str, Turn], disturbed: Sequence[tuple[str, Turn]]) -> list[Heard]:
    found = []
    for language, undisturbed in whole.items():
        asr = await asyncio.to_thread(WhisperAsr, (language,))
        try:
            words = split((await asr.transcribe(_sound(undisturbed))).text)
            for other, turn in disturbed:
                if other == language:
                    heard = split((await asr.transcribe(_sound(turn))).text)
                    blocks = SequenceMatcher(None, words, heard, autojunk=False).get_matching_blocks()
                    same = sum(block.size for block in blocks)
                    missing = len(undisturbed.pieces) - len(turn.pieces)
                    found.append(Heard(language, len(words), len(words) - same, missing))
        finally:
            await asr.aclose()
    return found


def _sound(turn: Turn) -> bytes:
    return resample(turn.heard(), turn.sample_rate, 16_000)

"""Pauses while the recogniser is busy; what else a device's pauses may cost is in test_early_work.py (unit tests)."""

import asyncio
from collections import Counter
from functools import partial
from threading import Event

from fleet.adapters.speech.engines import Engine
from fleet.core.ports import Transcript
from fleet.ground.metrics import turns
from fleet.roles.edge.early_work import EarlyWork
from tests.support.edge_stage import LIMIT, PROOF, on_stage


class QueuedAsr:
    """A recogniser as plugins are advised to be: an engine with a bounded queue. It works when it is let go."""

    def __init__(self) -> None:
        self._engine = Engine("asr", threads=1, queue=16)
        self.go_on = Event()
        self.asked = 0

    @property
    def has_room(self) -> bool:
        return self._engine.has_room

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        self.asked += 1
        await self._engine.run(partial(self.go_on.wait, LIMIT), LIMIT)
        return Transcript("Turn on the light.", "en")

    async def aclose(self) -> None:
        self._engine.close()

    async def take_places(self, group: asyncio.TaskGroup, left: int = 0) -> None:
        """Take places until there is no room, or room for so many more."""
        for _ in range(9 - left):
            group.create_task(self.transcribe(b""))
        await asyncio.sleep(0)
        assert self.has_room is bool(left)


async def test_no_pause_takes_the_places_of_utterances_that_are_over() -> None:
    asr, before = QueuedAsr(), turns.early_work_skipped.read()
    async with on_stage(asr=asr, pause_ms=60, endpoint_max_ms=240) as stage, asyncio.TaskGroup() as group:
        device = await stage.open()
        await stage.listen()
        await asr.take_places(group)
        busy = asr.asked
        device.be_silent(PROOF)
        device.say(silence=5)
        await stage.until(lambda: asr.asked > busy)
        assert asr.asked == busy + 1
        assert stage.turn_detector.judged == 0
        skipped = turns.early_work_skipped.read() - before
        assert skipped[("recogniser_busy",)] == 1
        asr.go_on.set()
        assert (await stage.heard()).text == "Turn on the light."
        assert asr.asked == busy + 1
    await asr.aclose()


async def test_pauses_of_many_devices_in_one_tick_share_the_places_that_are_left() -> None:
    asr, before = QueuedAsr(), turns.early_work_skipped.read()
    async with on_stage(asr=asr, pause_ms=60) as stage, asyncio.TaskGroup() as group:
        await asr.take_places(group, left=1)
        agent, work = stage.edge._services.agents.usual, EarlyWork()
        assert all(work.may_begin(f"device {number}", asr, 0.0) for number in range(5))
        begun = [group.create_task(work.recognise(agent, b"")) for _ in range(5)]
        await asyncio.sleep(0)
        asr.go_on.set()
        assert [await one is not None for one in begun] == [True] + [False] * 4
        assert turns.early_work_skipped.read() - before == Counter({("recogniser_busy",): 4})
    await asr.aclose()

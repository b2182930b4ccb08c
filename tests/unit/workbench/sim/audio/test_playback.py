"""When the loudspeaker says that it is silent, also in a process that comes late."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fleet.adapters.speech.opus import silence
from fleet.workbench.sim.audio.playback import Playback
from fleet.workbench.sim.profiles.profile import PROFILES
from fleet.workbench.sim.records.journal import Journal

LIMIT = 240
PACKET = silence(24_000, 60)


class Room:
    """Hears what is played; `time` is the device's clock."""

    def __init__(self) -> None:
        self.time = 0.0
        self.ends: list[float] = []
        self.heard = asyncio.Event()

    def played(self, at: float, pcm: bytes, sample_rate: int) -> None:
        pass

    def sounded(self, timestamp: int) -> None:
        pass

    def drained(self, at: float) -> None:
        self.ends.append(at)
        self.heard.set()

    async def silent(self) -> None:
        """Wait until it is silent."""
        async with asyncio.timeout(LIMIT):
            await self.heard.wait()
        self.heard.clear()


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
async def playback(room: Room) -> AsyncIterator[Playback]:
    async with asyncio.TaskGroup() as group:
        one = Playback(Journal(lambda: room.time), PROFILES["P1"], room)
        running = group.create_task(one.run())
        yield one
        running.cancel()


async def test_the_end_of_a_packet_is_told_though_it_was_over_before_anybody_looked(
    playback: Playback, room: Room
) -> None:
    for number in (1.0, 2.0):
        playback.push(PACKET, 0.06)
        room.time = number
        await room.silent()
    assert room.ends == [pytest.approx(0.06), pytest.approx(1.06)]


async def test_the_end_is_told_once(playback: Playback, room: Room) -> None:
    playback.push(PACKET, 0.06)
    room.time = 1.0
    await room.silent()
    playback.clear()
    for _ in range(5):
        playback._wake.set()
        await asyncio.sleep(0)
    assert len(room.ends) == 1

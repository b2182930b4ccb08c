import asyncio

import pytest

from fleet.adapters.speech.opus import Decoder
from fleet.workbench.conformance.steering import voice
from fleet.workbench.sim.audio.microphone import SEND_QUEUE
from fleet.workbench.sim.scripted.microphone import ScriptedMicrophone, silence


class Room:
    """A microphone on a clock of its own; `packets` are what it sent, each with its time."""

    def __init__(self, frame_ms: int = 60) -> None:
        self.now = 100.0
        self.packets: list[tuple[float, bytes]] = []
        self.microphone = ScriptedMicrophone(self.take, frame_ms, clock=lambda: self.now)

    def take(self, packet: bytes) -> None:
        self.packets.append((self.now, packet))

    def run(self, seconds: float, step: float = 0.01) -> None:
        """Let so much time pass."""
        for _ in range(round(seconds / step)):
            self.now += step
            self.microphone.advance(self.now)

    def heard(self) -> list[voice.Marked]:
        decoder = Decoder(16_000)
        return voice.read(b"".join(decoder.decode(packet) for _, packet in self.packets))


@pytest.fixture
async def room() -> Room:
    return Room()


def test_what_is_said_is_sent_without_a_gap(room: Room) -> None:
    room.microphone.on = True
    room.microphone.say(voice.say(111, 0.6) + voice.say(222, 0.6))
    room.run(1.5)
    heard = room.heard()
    assert [one.mark for one in heard] == [111, 222]
    assert abs(heard[1].begin - heard[0].end) < 0.1
    times = [at for at, _ in room.packets]
    assert times == pytest.approx([100.06 + 0.06 * number for number in range(len(times))], abs=0.011)


def test_nothing_is_made_and_nothing_lost_while_it_is_off(room: Room) -> None:
    room.microphone.say(voice.say(111, 0.6))
    room.run(1.0)
    assert room.packets == []
    room.microphone.on = True
    room.run(1.0)
    assert [one.mark for one in room.heard()] == [111]


def test_switched_off_and_on_it_goes_on_with_what_is_left(room: Room) -> None:
    room.microphone.say(voice.say(111, 1.2))
    for wanted in (True, False, True):
        room.microphone.on = wanted
        room.run(0.9)
    assert len(room.packets) == 30
    assert sum(one.end - one.begin for one in room.heard()) == pytest.approx(1.2, abs=0.15)


def test_frames_that_are_late_are_made_up_for_at_once(room: Room) -> None:
    room.microphone.on = True
    room.run(0.31, step=0.31)
    room.run(0.69)
    times = [at for at, _ in room.packets]
    assert times[:5] == pytest.approx([100.31] * 5)
    assert times[5:] == pytest.approx([100.36 + 0.06 * number for number in range(len(times) - 5)], abs=0.011)


def test_no_more_is_made_up_for_than_a_device_keeps(room: Room) -> None:
    room.microphone.on = True
    room.run(60.0, step=60.0)
    assert len(room.packets) == SEND_QUEUE


async def test_it_says_when_everything_was_said(room: Room) -> None:
    room.microphone.on = True
    room.microphone.say(silence(0.12))
    waiting = asyncio.ensure_future(room.microphone.said())
    room.run(0.1)
    await asyncio.sleep(0)
    assert not waiting.done()
    room.run(0.1)
    async with asyncio.timeout(240):
        await waiting


async def test_hushed_it_has_nothing_to_say(room: Room) -> None:
    room.microphone.say(silence(10))
    room.microphone.hush()
    async with asyncio.timeout(240):
        await room.microphone.said()


async def test_a_packet_is_sent_on_the_clock_of_the_loop() -> None:
    sent = asyncio.Event()
    microphone = ScriptedMicrophone(lambda _: sent.set(), 20)
    microphone.on = True
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        running = group.create_task(microphone.run())
        await sent.wait()
        running.cancel()

import asyncio
from types import SimpleNamespace

import pytest

from fleet.adapters.speech.opus import Decoder
from fleet.workbench.conformance.probe import microphone as module
from fleet.workbench.conformance.probe.microphone import Microphone, silence
from fleet.workbench.conformance.steering import voice


class Clock:
    """A loop whose time passes only in sleeps, and while its process is held up."""

    def __init__(self) -> None:
        self.now = 100.0

    def time(self) -> float:
        return self.now


class Room:
    """A microphone at work; `packets` are what it sent, each with its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, frame_ms: int = 60) -> None:
        self.clock = Clock()
        self.packets: list[tuple[float, bytes]] = []
        self.held_up = 0.0
        self.microphone = Microphone(self.take, frame_ms)

        async def pass_time(seconds: float) -> None:
            self.clock.now += seconds
            await asyncio.sleep(0)

        # The module's own name, not asyncio's: loops in other threads of this process sleep, too.
        own = SimpleNamespace(get_running_loop=lambda: self.clock, sleep=pass_time, Event=asyncio.Event)
        monkeypatch.setattr(module, "asyncio", own)

    def take(self, packet: bytes) -> None:
        self.packets.append((self.clock.now, packet))
        self.clock.now += self.held_up
        self.held_up = 0.0

    async def run(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.clock.now + seconds
        running = self.microphone.run()
        while self.clock.now < end:
            running.send(None)
        running.close()

    def heard(self) -> list[voice.Marked]:
        decoder = Decoder(16_000)
        return voice.read(b"".join(decoder.decode(packet) for _, packet in self.packets))


async def test_what_is_said_is_sent_without_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)
    room.microphone.on = True
    room.microphone.say(voice.say(111, 0.6) + voice.say(222, 0.6))
    await room.run(1.5)
    heard = room.heard()
    assert [one.mark for one in heard] == [111, 222]
    assert abs(heard[1].begin - heard[0].end) < 0.1
    times = [at for at, _ in room.packets]
    assert times == pytest.approx([100.0 + 0.06 * number for number in range(len(times))])


async def test_nothing_is_made_and_nothing_lost_while_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)
    room.microphone.say(voice.say(111, 0.6))
    await room.run(1.0)
    assert room.packets == []
    room.microphone.on = True
    await room.run(1.0)
    assert [one.mark for one in room.heard()] == [111]


async def test_frames_that_are_late_are_made_up_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)
    room.microphone.on = True
    room.held_up = 0.3
    await room.run(1.0)
    times = [at for at, _ in room.packets]
    assert times[1:6] == pytest.approx([100.3] * 5)
    assert times[-1] == pytest.approx(100.0 + 0.06 * (len(times) - 1))


async def test_no_more_is_made_up_for_than_a_device_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)
    room.microphone.on = True
    room.held_up = 60.0
    await room.run(60.5)
    assert 40 <= sum(at == pytest.approx(160.0) for at, _ in room.packets) <= 42


async def test_it_says_when_everything_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)
    room.microphone.on = True
    room.microphone.say(silence(0.12))
    waiting = room.microphone.said()
    waiting.send(None)
    await room.run(0.06)
    await room.run(0.06)
    with pytest.raises(StopIteration):
        waiting.send(None)


async def test_hushed_it_has_nothing_to_say() -> None:
    microphone = Microphone(lambda _: None, 60)
    microphone.say(silence(10))
    microphone.hush()
    async with asyncio.timeout(5):
        await microphone.said()

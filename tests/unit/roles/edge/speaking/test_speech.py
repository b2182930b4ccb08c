import asyncio
from collections import Counter
from collections.abc import AsyncGenerator

import pytest

from fleet.core import packet_queue
from fleet.core.playout import Playout
from fleet.roles.edge.speaking import speech
from fleet.wire.edge_messages import SpeakSentenceCommand
from fleet.wire.messages import AudioFormat
from tests.support.edge_stage import LIMIT
from tests.support.virtual_time import elapse

DOWNLINK = AudioFormat(24_000, 60)


class SlowVoice:
    """Yields a packet whenever it is let."""

    def __init__(self, packets: int, pause: float = 0.0) -> None:
        self._packets, self._pause = packets, pause
        self.closed = False

    async def packets(self, text: str, language: str, downlink: AudioFormat) -> AsyncGenerator[list[bytes], None]:
        try:
            for _ in range(self._packets):
                await elapse(self._pause)
                yield [b"packet"]
        finally:
            self.closed = True


class Sender:
    def take_packets(self) -> None:
        """Nothing is sent."""


def play_all(answer: Playout) -> None:
    answer.start(0.0)
    for second in range(1, 1 + len(answer.queue)):
        answer.step(float(second))
    assert not answer.queue


def answer() -> speech.SpokenAnswer:
    made = speech.SpokenAnswer("t1")
    made.prepare(Playout(60, b"silence"), Counter(), 0.0)
    made.add(SpeakSentenceCommand(device="d", session="s", turn="t1", index=0, text="A"))
    made.end()
    return made


async def test_voice_that_falls_silent_ends_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "PACKET_SECONDS", 0.05)
    spoken, voice = answer(), SlowVoice(1, pause=3600)
    async with asyncio.timeout(LIMIT):
        await speech.synthesise(spoken, voice, DOWNLINK, Sender())
    assert spoken.playout.drained
    assert voice.closed


class SparseVoice:
    """Has audio for some sentences only: the others are in a script that it cannot read."""

    async def packets(self, text: str, language: str, downlink: AudioFormat) -> AsyncGenerator[list[bytes], None]:
        yield [text.encode()] if text.isascii() else []


@pytest.mark.parametrize("texts", ["ЖЖЖЖ", "AЖЖЖB", "ЖЖЖAЖЖЖBЖЖЖCDE"])
async def test_sentences_without_audio_do_not_hold_up_the_answer(texts: str) -> None:
    spoken = speech.SpokenAnswer("t1")
    playout = Playout(60, b"silence")
    spoken.prepare(playout, Counter(), 0.0)
    for index, text in enumerate(texts):
        spoken.add(SpeakSentenceCommand(device="d", session="s", turn="t1", index=index, text=text))
    spoken.end()
    running = asyncio.get_running_loop().create_task(speech.synthesise(spoken, SparseVoice(), DOWNLINK, Sender()))
    await elapse(1.0)
    playout.start(now := 0.0)
    said: list[object] = []
    while not said or said[-1] != "stop":
        now += 1.0
        assert now < 100, "it is stuck"
        step = playout.step(now)
        said += [texts[sentence] for sentence in step.begins]
        said += ["stop"] if step.stop else []
        spoken.changed.set()
        await elapse(0.1)
    await running
    assert said == [*texts, "stop"]


class BrokenVoice(SlowVoice):
    async def packets(self, text: str, language: str, downlink: AudioFormat) -> AsyncGenerator[list[bytes], None]:
        yield [b"packet"]
        raise UnicodeEncodeError("ascii", "忙", 0, 1, "no ASCII")


async def test_a_voice_that_crashes_ends_the_answer() -> None:
    spoken = answer()
    with pytest.raises(UnicodeEncodeError):
        await speech.synthesise(spoken, BrokenVoice(1), DOWNLINK, Sender())
    assert (spoken.finished, len(spoken.playout.queue)) == (True, 1)
    play_all(spoken.playout)
    assert spoken.playout.drained


async def test_voice_may_take_its_time_as_long_as_packets_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "PACKET_SECONDS", 0.5)
    spoken = answer()
    async with asyncio.timeout(LIMIT):
        await speech.synthesise(spoken, SlowVoice(20, pause=0.04), DOWNLINK, Sender())
    assert len(spoken.playout.queue) == 20


async def test_voice_waits_for_room_for_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_queue, "MOST_PACKETS", 3)
    monkeypatch.setattr(speech, "PACKET_SECONDS", 0.05)
    spoken, limit = answer(), asyncio.Event()
    running = asyncio.get_running_loop().create_task(speech.synthesise(spoken, SlowVoice(5), DOWNLINK, Sender()))
    asyncio.get_running_loop().call_later(0.2, limit.set)
    async with asyncio.timeout(LIMIT):
        await limit.wait()
        assert not running.done()
        assert len(spoken.playout.queue) == 3
        play_all(spoken.playout)
        spoken.changed.set()
        await running
    assert len(spoken.playout.queue) == 2

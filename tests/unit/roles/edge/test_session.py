"""What a session costs its edge: no parts before it is used, and nothing that only the garbage collector can free."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fleet.roles.edge import session as sessions
from fleet.wire.edge_messages import SessionSilentEvent
from tests.support.edge_stage import Device, Stage, on_stage, opened, opus_like, settle
from tests.support.garbage import no_garbage

SSRC = 0x11223344
Talk = Callable[[Stage, Device], Awaitable[None]]
"""What a device does in a session that listens."""


async def session(stage: Stage, number: int, mode: str = "", talk: Talk | None = None) -> None:
    """Open a session, let the device talk in it, and close it."""
    name = f"s{number}"
    stage.posted.clear()
    await stage.send("session_opened", name, **opened(SSRC))
    if talk:
        device = await stage.device(SSRC)
        await stage.send("listening_started", name, mode=mode)
        await talk(stage, device)
        device.close()
    await stage.send("session_closed", name)


async def leave_in_the_middle_of_a_word(stage: Stage, device: Device) -> None:
    heard = len(stage.audio_input.seen)
    device.send(*(opus_like(number) for number in range(1, 7)))
    await stage.until(lambda: len(stage.audio_input.seen) >= heard + 6)


async def leave_before_the_words_are_recognised(stage: Stage, device: Device) -> None:
    never, asked = [asyncio.get_running_loop().create_future() for _ in range(3)], len(stage.asr.heard)
    stage.asr.script.extend(never)
    device.say()
    await stage.until(lambda: len(stage.asr.heard) > asked)
    stage.asr.script.clear()


async def ask(stage: Stage, device: Device) -> None:
    """Say something, and have an answer of two sentences given."""
    device.say()
    heard = await stage.heard()
    await stage.send("speech_begun", heard.session, turn=heard.turn)
    for index, text in enumerate(("A", "B")):
        about = {"turn": heard.turn, "index": index, "text": text, "language": "en"}
        await stage.send("sentence_ready", heard.session, **about)
    await stage.send("speech_ended", heard.session, turn=heard.turn, index=2)


async def hear_an_answer(stage: Stage, device: Device) -> None:
    await ask(stage, device)
    await stage.until(lambda: "speech_done" in stage.kinds())


async def leave_during_an_answer(stage: Stage, device: Device) -> None:
    stage.voice.packets_each = 200
    await ask(stage, device)
    await device.packets(2)


async def interrupt_an_answer(stage: Stage, device: Device) -> None:
    await leave_during_an_answer(stage, device)
    device.say()
    await stage.until(lambda: "speech_interrupted" in stage.kinds() or stage.kinds().count("utterance_heard") > 1)


async def press(stage: Stage, device: Device) -> None:
    heard = len(stage.audio_input.seen)
    device.send(*(opus_like(number) for number in range(1, 6)))
    await stage.until(lambda: len(stage.audio_input.seen) >= heard + 5)
    [one] = stage.edge._registry
    await stage.send("listening_stopped", one.opened.session)
    await stage.heard()


@pytest.mark.parametrize(
    ("mode", "talk"),
    [
        ("", None),
        ("auto", leave_in_the_middle_of_a_word),
        ("auto", leave_before_the_words_are_recognised),
        ("auto", hear_an_answer),
        ("auto", leave_during_an_answer),
        ("realtime", interrupt_an_answer),
        ("manual", press),
    ],
    ids=lambda it: it.__name__ if callable(it) else it or "only hello and goodbye",
)
async def test_a_closed_session_is_freed_without_the_garbage_collector(mode: str, talk: Talk | None) -> None:
    async with on_stage() as stage:
        await session(stage, 0, mode, talk)  # what is made once stays
        with no_garbage():
            # The edge holds the session that it looked at last, so one is more than counts.
            for number in range(1, 4):
                await session(stage, number, mode, talk)
            await settle()


async def test_a_session_has_no_parts_before_something_comes_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[sessions.SessionParts] = []

    class Counted(sessions.SessionParts):
        def __init__(self, *about: Any) -> None:
            super().__init__(*about)
            made.append(self)

    monkeypatch.setattr(sessions, "SessionParts", Counted)
    async with on_stage() as stage:
        await session(stage, 1)
        assert not made
        await stage.send("session_opened", "s2", **opened(SSRC))
        [idle] = stage.edge._registry
        stage.pass_time(1.0)
        idle.recover()
        await stage.send("agents_changed", "", device="")
        await settle()
        assert not idle.busy and not made
        await stage.send("listening_started", "s2", mode="auto")
        assert len(made) == 1
        stage.pass_time(1.0)
        assert [idle.parts] == made
        await stage.send("session_opened", "s3", **opened(SSRC))
    assert stage.orders == [{"type": "goodbye", "session_id": "s3"}]
    assert len(made) == 1


async def test_a_session_that_nothing_came_for_ends_as_unused() -> None:
    async with on_stage() as stage:
        await stage.send("session_opened", **opened(SSRC))
        stage.pass_time(14.0)
        await settle()
        assert not stage.posted
        stage.pass_time(16.0)
        await stage.until(lambda: stage.posted)
        [silent] = stage.posted
        assert isinstance(silent, SessionSilentEvent) and silent.reason == "unused"

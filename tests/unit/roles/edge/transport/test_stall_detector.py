"""An edge that stood still: what waited is heard, and what may be true no more is not said."""

import asyncio

import pytest

from fleet.roles.edge import outbox
from fleet.roles.edge.transport.stall_detector import LONG_STALL_SECONDS, STALL_SECONDS, StallDetector
from tests.support.edge_stage import on_stage, opened, opus_like


@pytest.mark.parametrize(("still", "lapses"), [(LONG_STALL_SECONDS - 0.1, 0), (LONG_STALL_SECONDS, 1)])
def test_sessions_lapse_only_when_others_may_have_given_them_up(still: float, lapses: int) -> None:
    lapsed: list[None] = []
    stalls = StallDetector(10.0, lambda: lapsed.append(None))
    stalls.beat(10.0 + still)
    stalls.beat(10.1 + still)
    assert len(lapsed) == lapses


def test_busy_moments_are_no_standstill() -> None:
    stalls = StallDetector(10.0, lambda: pytest.fail("lapsed"))
    for beat in range(1, 20):
        stalls.beat(10.0 + beat * STALL_SECONDS)
    assert stalls.waited(20.0) == 0.0


def test_it_is_forgotten_when_what_waited_has_come() -> None:
    stalls = StallDetector(10.0, lambda: None)
    stalls.beat(11.5)
    assert stalls.waited(12.0) == 1.5
    assert stalls.waited(20.0) == 0.0


async def test_what_was_said_meanwhile_is_heard_when_the_word_that_the_device_listens_comes_after_it() -> None:
    async with on_stage() as stage:
        await stage.open()
        now = asyncio.get_running_loop().time()
        stage.edge._services.stalls._beat = now - 1.4
        stage.edge._services.stalls.beat(now)
        [session] = stage.edge._registry
        for number in range(1, 21):
            session.parts.turn_taking.uplink.push(number, opus_like(number), now)
        await stage.listen()
        for number in range(21, 41):
            session.parts.turn_taking.uplink.push(number, b"\x58", now)
        await stage.heard()
        assert stage.asr.markers()[:20] == list(range(1, 21))


async def test_after_a_long_one_an_edge_says_nothing_of_what_it_had_to_say() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        stage.voice.packets_each = 200
        device.say()
        turn = (await stage.heard()).turn
        await stage.speak(turn, "A", "B")
        await device.packets(2)
        said = len(stage.orders)
        stage.edge._services.stalls._beat -= LONG_STALL_SECONDS
        await stage.until(lambda: "session_silent" in stage.kinds())
        assert not list(stage.edge._registry)
        assert len(stage.orders) == said


async def test_after_a_long_one_all_shards_are_asked_for_goodbyes_however_many_sessions_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "LONGEST", 1)
    async with on_stage(edge_sessions=6) as stage:
        for number in range(6):
            about = {**opened(number), "device": f"02:00:00:00:00:{number:02x}"}
            await stage.send("session_opened", f"s{number}", **about)
        stage.edge._services.stalls._beat -= LONG_STALL_SECONDS
        await stage.until(lambda: stage.kinds().count("session_silent") == 6)
        assert not list(stage.edge._registry) and not stage.edge.counters["outbox_full"]

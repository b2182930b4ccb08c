from typing import Any

import pytest

from tests.support.edge_stage import on_stage, opened


@pytest.mark.parametrize(
    "wrong",
    [
        {"dialect": "morse"},
        {"key": "00"},
        {"uplink_frame_ms": 7},
        {"downlink_frame_ms": 7},
        {"uplink_rate": 1},
        {"downlink_rate": 44_100},
    ],
)
async def test_a_session_that_the_edge_cannot_serve_is_given_back(wrong: dict[str, Any]) -> None:
    async with on_stage() as stage:
        await stage.send("session_opened", **{**opened(7), **wrong})
        await stage.until(lambda: stage.posted)
        assert [(event.kind, event.session) for event in stage.posted] == [("session_silent", "s1")]
        assert len(stage.edge._registry) == 0


async def test_an_edge_that_is_full_gives_a_session_back() -> None:
    async with on_stage(edge_sessions=1) as stage:
        await stage.open()
        await stage.send("session_opened", "s2", **{**opened(8), "device": "aa:bb:cc:dd:ee:02"})
        await stage.until(lambda: stage.posted)
        assert [session.opened.session for session in stage.edge._registry] == ["s1"]


async def test_a_device_has_its_own_place_again_on_an_edge_that_is_full() -> None:
    async with on_stage(edge_sessions=1) as stage:
        await stage.open()
        await stage.open(8, "s2")
        assert [session.opened.session for session in stage.edge._registry] == ["s2"]


async def test_a_hello_that_the_edge_refuses_ends_the_earlier_session_too() -> None:
    async with on_stage() as stage:
        await stage.open()
        await stage.send("session_opened", "s2", **{**opened(8), "key": "00"})
        assert len(stage.edge._registry) == 0


async def test_a_session_whose_ssrc_is_in_use_is_given_back() -> None:
    async with on_stage() as stage:
        device = await stage.open()
        await stage.listen()
        await stage.hears(device)
        await stage.send("session_opened", "s2", **{**opened(device.ssrc), "device": "aa:bb:cc:dd:ee:02"})
        await stage.until(lambda: stage.posted)
        assert [(event.kind, event.session) for event in stage.posted] == [("session_silent", "s2")]
        device.say()
        assert (await stage.heard()).session == "s1"


async def test_a_command_for_a_session_that_is_over_is_counted() -> None:
    async with on_stage() as stage:
        await stage.send("listening_started", "s0", mode="auto")
        assert stage.edge.counters["command_without_session"] == 1
        await stage.open()
        await stage.send("session_closed")
        await stage.send("session_closed")
        assert len(stage.edge._registry) == 0 and stage.edge.counters["command_without_session"] == 2


async def test_a_session_that_is_opened_twice_stays_as_it_was() -> None:
    async with on_stage() as stage:
        await stage.open()
        [session] = stage.edge._registry
        await stage.send("session_opened", **opened(0x11223344))
        assert list(stage.edge._registry) == [session]


async def test_a_command_that_crashes_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage() as stage:
        await stage.open()
        [session] = stage.edge._registry

        async def crash(*_: Any) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(type(session), "take", crash)
            await stage.listen()
        await stage.send("session_closed")
        assert len(stage.edge._registry) == 0

"""When an edge speaks the greeting of an agent."""

import asyncio

import pytest

from tests.support.edge_stage import opus_like, settle
from tests.support.virtual_time import elapse
from tests.unit.roles.edge.test_agents import site


@pytest.mark.parametrize(("mode", "spoken"), [("auto", ["Hi!"]), ("manual", [])])
async def test_a_greeting_is_spoken_once_when_a_device_begins_to_listen(mode: str, spoken: list[str]) -> None:
    async with site() as one:
        await one.publish(greeting="Hi!")
        for _ in range(2):
            await one.stage.listen(mode)
            one.device.be_silent(4)
            await one.stage.received(4)
        if spoken:
            await one.stage.told_at_least("stop")
        assert one.stage.voice.spoken == spoken


async def test_a_device_that_listens_is_greeted_when_its_agent_is_loaded_but_not_by_a_later_agent() -> None:
    async with site() as one:
        one.agent._wanted = "an agent that is being loaded"
        await one.stage.listen("auto")
        one.device.be_silent(4)
        await one.stage.received(4)
        assert one.stage.voice.spoken == []
        await one.publish(greeting="Hi!")
        await one.stage.told_at_least("stop")
        await one.publish(greeting="Hi again!")
        assert one.stage.voice.spoken == ["Hi!"]


async def test_an_agent_that_is_loaded_after_the_goodbye_greets_nobody() -> None:
    async with site() as one:
        await one.publish(greeting="Hi!")
        agent, greets = one.agent, one.agent.current
        agent._wanted = "an agent that is being loaded"
        await one.stage.listen("auto")
        await one.stage.send("session_closed")
        agent._set(greets)
        await settle()
        assert one.stage.voice.spoken == []


@pytest.mark.parametrize("mode", ["auto", "realtime"])
async def test_who_speaks_before_the_greeting_has_a_voice_is_understood_and_not_greeted(mode: str) -> None:
    async with site() as one:
        one.stage.voice.gate = asyncio.Event()
        [session] = one.stage.edge._registry
        uplink = session.parts.turn_taking.uplink
        await one.publish(greeting="Hi!")
        await one.stage.listen(mode)
        one.device.be_silent(4)
        await one.stage.until(lambda: one.stage.voice.spoken == ["Hi!"])
        one.device.send(*(opus_like(marker) for marker in range(1, 4)))
        await one.stage.until(lambda: uplink.period and uplink.period.speaking)
        one.stage.voice.gate.set()
        await elapse(1)
        one.device.say(frames=3, first=4)
        turn = (await one.stage.heard()).turn
        assert one.stage.asr.markers() == [0, *range(1, 7), 0]
        await one.stage.speak(turn, "It is seven.")
        await one.stage.told_at_least("start", "stop")
        shown = [order["text"] for order in one.stage.orders if order.get("state") == "sentence_start"]
        assert shown == ["It is seven."]


async def test_a_device_in_auto_mode_is_not_listened_to_while_it_is_greeted() -> None:
    async with site() as one:
        await one.publish(greeting="Hi!")
        await one.stage.listen("auto")
        one.device.be_silent(4)
        await one.stage.told_at_least("start")
        [session] = one.stage.edge._registry
        gates = [session.parts.turn_taking.uplink.gate]
        await one.stage.told_at_least("start", "stop")
        assert [*gates, session.parts.turn_taking.uplink.gate] == ["shut", "open"]

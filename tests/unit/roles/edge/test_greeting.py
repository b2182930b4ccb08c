"""When an edge speaks the greeting of an agent."""

import pytest

from tests.support.edge_stage import settle
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

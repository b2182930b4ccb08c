import asyncio

import pytest

from fleet.roles.gateway.client import Client, ClientGone
from fleet.roles.gateway.turns.callbacks import Callbacks
from fleet.wire.gateway import ToolAnswer
from fleet.wire.gateway_messages import Message, ToolCallback

PATIENCE = 10


class Desk(Client):
    """A client that is told things, and is gone when it shall be."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[ToolCallback] = asyncio.Queue()
        self.gone = False

    async def send(self, message: Message) -> None:
        if self.gone:
            raise ClientGone("gone")
        assert isinstance(message, ToolCallback)
        self.heard.put_nowait(message)


async def test_answer_reaches_the_call_that_it_names() -> None:
    desk = Desk()
    callbacks = Callbacks(desk, PATIENCE, 10)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(callbacks.call(name, {"n": 1})) for name in ("one", "two")]
        asked = [await desk.heard.get() for _ in calls]
        assert [(one.tool_name, one.arguments) for one in asked] == [("one", {"n": 1}), ("two", {"n": 1})]
        for one in reversed(asked):
            assert callbacks.settle(ToolAnswer(one.call_id, True, one.tool_name))
            assert not callbacks.settle(ToolAnswer(one.call_id, True, "again"))
    answers = [call.result() for call in calls]
    assert [answer.result for answer in answers if answer] == ["one", "two"]
    assert not callbacks._waiting


async def test_nobody_waits_longer_than_the_limit() -> None:
    desk = Desk()
    callbacks = Callbacks(desk, 0.01, 10)
    assert await callbacks.call("one", {}) is None
    late = await desk.heard.get()
    assert not callbacks.settle(ToolAnswer(late.call_id, True))
    assert not callbacks._waiting


async def test_call_that_cannot_be_sent_leaves_nothing_behind() -> None:
    desk = Desk()
    desk.gone = True
    callbacks = Callbacks(desk, PATIENCE, 1)
    for _ in range(2):
        with pytest.raises(ClientGone):
            await callbacks.call("one", {})
    assert not callbacks._waiting

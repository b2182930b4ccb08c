"""The order of the calls of one message: the server's first, then the client's, as many as it takes at a time."""

import asyncio

from fleet.core.toolbox import Prepared
from fleet.roles.gateway.turns.round import Round, ServerCall
from fleet.wire.gateway_messages import Status
from fleet.wire.mcp import ToolSpec


class Ear:
    """Keeps what a client is told."""

    def __init__(self) -> None:
        self.told: list[Status] = []

    async def send(self, message: Status) -> None:
        self.told.append(message)

    @property
    def pending(self) -> list[object]:
        return [one.data["pending_tools"] for one in self.told]


def client_call(name: str) -> Prepared:
    return Prepared(ToolSpec(name=name), {})


async def test_the_client_is_called_when_the_servers_tools_have_run() -> None:
    ear = Ear()
    calls = Round({"a": ServerCall("now", {}), "b": client_call("lamp")}, ear, 10)  # type: ignore[arg-type] # as much of a peer as it needs
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(calls.until_turn_of("b"))
        await asyncio.sleep(0)
        assert not waiting.done()
        calls.server_done()
    await calls.announce("b")
    assert ear.pending == [1]


async def test_each_wave_is_announced_once_and_begins_when_the_one_before_is_over() -> None:
    ear = Ear()
    calls = Round({name: client_call(name) for name in "abc"}, ear, 2)  # type: ignore[arg-type] # as above
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        third = group.create_task(calls.until_turn_of("c"))
        for name in "ab":
            await calls.until_turn_of(name)
            await calls.announce(name)
        assert ear.pending == [2]
        calls.client_done("a")
        await asyncio.sleep(0)
        assert not third.done()
        calls.client_done("b")
    await calls.announce("c")
    assert ear.pending == [2, 1]

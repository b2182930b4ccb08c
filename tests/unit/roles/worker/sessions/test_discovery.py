from typing import Any

import pytest

from fleet.roles.worker.sessions import discovery as module
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.wire.messages import ResponseEvent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

PAGES: dict[str, dict[str, Any]] = {
    "": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "more"},
    "more": {"tools": [{"name": "b", "inputSchema": {"type": "object"}}]},
}


class Asked:
    """A discovery, and a device that answers it as the test says."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage, self.discovery = stage, Discovery(stage.resources, stage.counts)
        self._answered = 0

    async def answer(self, pages: dict[str, dict[str, Any]], seconds: float = 1.0) -> list[str]:
        """Answer all requests that come in this time; return their methods."""
        methods = []
        for _ in range(int(seconds * 100)):
            await elapse(0.01)
            requests = [one["payload"] for one in self.stage.sent() if one["type"] == "mcp"]
            for request in requests[self._answered :]:
                methods.append(request["method"])
                result = pages.get(request.get("params", {}).get("cursor", ""), {"serverInfo": {}})
                if request["method"] == "initialize":
                    result = {"serverInfo": {"name": "board", "version": "2.1"}}
                if "id" in request:
                    self.discovery.pending.resolve(MAC, ResponseEvent(str(request["id"]), result))
            self._answered = len(requests)
        return methods

    async def known(self) -> list[str]:
        return [tool.name for tool in await self.stage.resources.tools.read(MAC)]


@pytest.fixture
def asked(stage: WorkerStage) -> Asked:
    return Asked(stage)


async def test_all_pages_are_read_and_stored(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    methods = await asked.answer(PAGES)
    assert methods == ["initialize", "notifications/initialized", "tools/list", "tools/list"]
    assert await asked.known() == ["a", "b"]
    assert await asked.discovery.wait_until_done(MAC, 0)


async def test_a_device_that_does_not_answer_is_given_up_and_a_turn_does_not_wait_so_long(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    assert not await asked.discovery.wait_until_done(MAC, 2)
    assert await asked.discovery.wait_until_done(MAC, module.ANSWER_SECONDS)
    assert await asked.known() == []


async def test_what_was_read_of_a_list_that_broke_off_is_kept(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    await asked.answer({"": PAGES[""], "more": {"tools": 7}})
    await elapse(module.ANSWER_SECONDS)
    assert await asked.known() == ["a"] and sum(asked.stage.counts.values()) == 1


async def test_pages_that_go_round_in_a_circle_end(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    methods = await asked.answer({"": PAGES[""], "more": {"tools": [], "nextCursor": "more"}})
    assert methods.count("tools/list") == 2 and await asked.known() == ["a"]


async def test_a_device_that_reconnects_is_asked_again_and_one_that_registers_is_not(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    asked.discovery.restart(asked.stage.shard, MAC, "xiaozhi")
    assert (await asked.answer(PAGES)).count("initialize") >= 1
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    asked.discovery.stop(MAC)
    assert await asked.discovery.wait_until_done(MAC, 0)

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import pytest

from fleet.ground.errors import Fenced
from fleet.ground.metrics import broker as metrics
from fleet.roles.worker.sessions import discovery as module
from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.sessions.known_lists import KnownLists
from fleet.wire.mcp import ToolSpec, parse_page
from fleet.wire.messages import ResponseEvent
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

PAGES: dict[str, dict[str, Any]] = {
    "": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "more"},
    "more": {"tools": [{"name": "b", "inputSchema": {"type": "object"}}]},
}


class Asked:
    """A discovery, and a device that answers it as the test says."""

    pause = 0.0
    """Seconds until it answers a request for a page."""
    silent = "nothing"
    """The cursor of a page that it never sends."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage, self.discovery = stage, Discovery(stage.resources, stage.counts)
        self._answered = 0

    async def answer(self, pages: dict[str, dict[str, Any]], seconds: float = 1.0) -> list[str]:
        """Answer all requests that come in this time; return their methods."""
        methods = []
        for _ in range(200):
            await elapse(seconds / 200)
            requests = [one["payload"] for one in self.stage.sent() if one["type"] == "mcp"]
            for request in requests[self._answered :]:
                methods.append(request["method"])
                result = pages.get(request.get("params", {}).get("cursor", ""), {"serverInfo": {}})
                if request["method"] == "initialize":
                    result = {"serverInfo": {"name": "board", "version": "2.1"}}
                if request["method"] == "tools/list":
                    await elapse(self.pause)
                if "id" in request and request.get("params", {}).get("cursor") != self.silent:
                    self.discovery.pending.resolve(MAC, str(request["id"]), ResponseEvent(str(request["id"]), result))
            self._answered = len(requests)
        return methods

    async def known(self) -> list[str]:
        return [tool.name for tool in await self.stage.resources.tools.read(MAC)]

    async def forget(self) -> None:
        """Let Redis know the device no more: the next one is another device."""
        store = self.stage.resources.store
        await store.client.delete(store.keys.device(MAC), store.keys.tools(MAC))


@pytest.fixture
def asked(stage: WorkerStage) -> Asked:
    return Asked(stage)


async def test_all_pages_are_read_and_stored(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    methods = await asked.answer(PAGES)
    assert methods == ["initialize", "notifications/initialized", "tools/list", "tools/list"]
    assert await asked.known() == ["a", "b"]
    assert await asked.discovery.wait_until_done(MAC, 0) == "idle"


async def test_pages_that_are_as_in_the_stored_list_are_not_parsed(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked.stage.connect()
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    await asked.answer(PAGES)
    await asked.stage.connect(epoch=2)
    with monkeypatch.context() as patch:
        patch.setattr(module, "parse_page", None)
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        assert (await asked.answer(PAGES)).count("tools/list") == 2
        assert await asked.discovery.wait_until_done(MAC, 0) == "idle"
    assert await asked.known() == ["a", "b"]
    assert (await asked.stage.resources.devices.read(MAC)).tools_known


@pytest.mark.parametrize("tools", [PAGES["more"]["tools"], [*PAGES["more"]["tools"], {"name": 7}]])
async def test_pages_that_another_device_sent_are_parsed_only_if_something_was_wrong_with_them(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, tools: list[dict[str, Any]]
) -> None:
    parsed: list[object] = []
    monkeypatch.setattr(module, "parse_page", lambda *page: parsed.append(page) or parse_page(*page))
    sent = {**PAGES, "more": {"tools": tools}}
    for _ in range(2):
        await asked.stage.connect()
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        await asked.answer(sent)
        record = await asked.stage.resources.devices.read(MAC)
        assert (await asked.known(), record.tools_known, record.board) == (["a", "b"], True, "board")
        await asked.forget()
    assert len(parsed) == (2 if len(tools) == 1 else 4)
    assert asked.discovery.lists.used == 0


async def test_a_list_that_begins_like_that_of_another_device_is_read_whole(asked: Asked) -> None:
    for pages_now, names in (
        (PAGES, ["a", "b"]),
        ({**PAGES, "more": {"tools": [{"name": "c"}]}}, ["a", "c"]),
        ({"": PAGES[""], "more": {"tools": 7}}, ["a"]),
        (PAGES, ["a", "b"]),
    ):
        await asked.stage.connect()
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        await asked.answer(pages_now)
        assert await asked.known() == names
        await asked.forget()


async def test_a_list_that_redis_lost_is_stored_again_though_the_pages_are_known(asked: Asked) -> None:
    store = asked.stage.resources.store
    for epoch in (1, 2):
        await asked.stage.connect(epoch=epoch)
        await store.client.delete(store.keys.tools(MAC))
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        await asked.answer(PAGES)
        assert await asked.known() == ["a", "b"]
    assert asked.discovery.lists.used == 0


async def test_a_lost_list_that_exceeds_the_budget_is_not_stored_as_an_empty_one(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, lists = asked.stage.resources.store, asked.discovery.lists
    monkeypatch.setattr(KnownLists, "put", lambda *_: None)  # another worker read the list before
    for epoch, limit in ((1, lists.limit), (2, 300)):
        await asked.stage.connect(epoch=epoch)
        await store.client.delete(store.keys.tools(MAC))
        lists.limit = limit
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        await asked.answer(PAGES)
    assert not await store.client.exists(store.keys.tools(MAC))
    lists.limit = 10_000
    await asked.answer(PAGES, 3 * module.RETRY_SECONDS)
    assert await asked.known() == ["a", "b"]


@pytest.mark.parametrize("stored", [True, False])
async def test_a_worker_that_lost_the_shard_writes_no_list(stage: WorkerStage, stored: bool) -> None:
    tools, former = stage.resources.tools, dataclasses.replace(stage.shard.owner, fence="0")
    await stage.connect()
    if stored:
        await tools.write(stage.shard.owner, MAC, [ToolSpec(name="a")], {"pg": "1"})
    with pytest.raises(Fenced):
        await tools.write(former, MAC, [ToolSpec(name="b")], {"pg": "2"})
    with pytest.raises(Fenced):
        await tools.keep(former, MAC, {"pg": "2"})
    assert [tool.name for tool in await tools.read(MAC)] == ["a"] * stored
    assert (await stage.resources.devices.read(MAC)).pages == "1" * stored


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({**PAGES, "more": {"tools": [{"name": "c"}]}}, ["a", "c"]),
        ({"": {"tools": PAGES[""]["tools"]}}, ["a"]),
        (
            {**PAGES, "more": {**PAGES["more"], "nextCursor": "last"}, "last": {"tools": [{"name": "c"}]}},
            ["a", "b", "c"],
        ),
        ({"": {"tools": []}}, []),
    ],
)
async def test_a_list_that_has_changed_behind_known_pages_is_read_whole(
    asked: Asked, changed: dict[str, dict[str, Any]], names: list[str]
) -> None:
    for epoch, pages_now in enumerate((PAGES, changed, changed), start=1):
        await asked.stage.connect(epoch=epoch)
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        await asked.answer(pages_now)
    assert await asked.known() == names
    assert asked.discovery.lists.used == 0


async def test_a_list_that_was_not_read_to_its_end_is_parsed_again(asked: Asked) -> None:
    for epoch, pages_now in enumerate((PAGES, {"": PAGES[""], "more": {"tools": 7}}, PAGES), start=1):
        await asked.stage.connect(epoch=epoch)
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        await asked.answer(pages_now)
        await elapse(module.ANSWER_SECONDS)
    assert await asked.known() == ["a", "b"]


async def test_an_answer_to_a_worker_that_handed_the_shard_over_begins_the_discovery_again(asked: Asked) -> None:
    await asked.stage.connect()
    late = ResponseEvent(str(2**30), {"serverInfo": {}})
    await asked.discovery.resume(asked.stage.shard, MAC, "xiaozhi", ResponseEvent("7", {}))
    assert await asked.answer(PAGES) == [], "the answer to a tool call"
    await asked.discovery.resume(asked.stage.shard, MAC, "xiaozhi", late)
    assert "initialize" in await asked.answer(PAGES)
    assert await asked.known() == ["a", "b"]
    await asked.discovery.resume(asked.stage.shard, MAC, "xiaozhi", late)
    assert await asked.answer(PAGES) == [], "the tools are known"


async def test_a_device_that_does_not_answer_is_given_up_and_a_turn_does_not_wait_so_long(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    assert await asked.discovery.wait_until_done(MAC, 2) == "late"
    assert await asked.discovery.wait_until_done(MAC, module.ANSWER_SECONDS) == "done"
    assert await asked.known() == []


async def test_what_was_read_of_a_list_that_broke_off_is_kept(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    await asked.answer({"": PAGES[""], "more": {"tools": 7}})
    await elapse(module.ANSWER_SECONDS)
    assert await asked.known() == ["a"] and sum(asked.stage.counts.values()) == 1


async def test_a_device_that_goes_offline_while_it_is_asked_is_not_waited_for(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        await elapse(1)
        asked.discovery.pending.disconnect(MAC)
        assert await asked.discovery.wait_until_done(MAC, 0.1) == "done"
    [record] = [one for one in caplog.records if one.message == "device has no tools to offer"]
    assert vars(record)["reason"] == "the device disconnected"


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
    assert await asked.discovery.wait_until_done(MAC, 0) == "idle"


def tool(name: str, size: int = 0) -> dict[str, Any]:
    return {"name": name, "description": "x" * size, "inputSchema": {"type": "object"}}


def pages(number: int, each: int, size: int) -> dict[str, dict[str, Any]]:
    """Return pages with so many tools each, of at least so many bytes."""
    return {
        str(page or ""): {
            "tools": [tool(f"t{page}.{at}", size) for at in range(each)],
            **({"nextCursor": str(page + 1)} if page < number - 1 else {}),
        }
        for page in range(number)
    }


def exported(asked: Asked) -> dict[str, int]:
    """Return what the worker's metric says of the refusals so far."""
    before = metrics.refusals.read()
    with metrics.refusals.following(asked.stage.counts):
        return {reason: count for (reason,), count in (metrics.refusals.read() - before).items()}


@pytest.mark.parametrize(
    ("answers", "reason", "kept"),
    [
        (pages(1, 9, 1000), "page_too_long", 7),
        (pages(1, 2, 60_000), "unreadable", 0),
        (pages(31, 7, 1000), "too_long", 61),
        ({"": {"tools": 7}}, "unreadable", 0),
        ({"": PAGES[""], "more": {"tools": "?"}}, "unreadable", 1),
    ],
)
async def test_the_operator_sees_of_each_device_why_its_list_is_incomplete(
    asked: Asked, answers: dict[str, dict[str, Any]], reason: str, kept: int
) -> None:
    for device in (1, 2):
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        await asked.answer(answers, 2)
        assert exported(asked) == {f"tools_{reason}": device}
        assert len(await asked.known()) == kept
        await asked.forget()


async def test_a_list_whose_next_page_does_not_come_is_broken_off(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    asked.silent = "more"
    await asked.answer(PAGES)
    await elapse(module.ANSWER_SECONDS)
    assert exported(asked) == {"tools_broken_off": 1} and await asked.known() == ["a"]


async def test_a_list_that_takes_too_long_ends_with_what_was_read(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    asked.pause = module.ANSWER_SECONDS * 0.9
    await asked.answer(pages(9, 1, 0), 100)
    assert exported(asked) == {"tools_too_slow": 1}
    assert len(await asked.known()) == module.LIST_SECONDS // asked.pause


async def test_a_list_without_end_is_read_up_to_a_bound(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    await asked.answer(pages(100, 1, 0), 2)
    assert len(await asked.known()) == module.MOST_PAGES


@pytest.mark.parametrize(("chance", "seconds"), [(min, module.RETRY_SECONDS), (max, 2 * module.RETRY_SECONDS)])
async def test_a_device_whose_list_had_no_room_is_asked_again_after_a_while(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, chance: Callable[[float, float], float], seconds: float
) -> None:
    monkeypatch.setattr(random, "uniform", chance)
    room, asked.discovery.lists.limit = asked.discovery.lists.limit, 100
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    await asked.answer(PAGES)
    assert exported(asked) == {"tools_too_many_lists": 1} and await asked.known() == []
    asked.discovery.lists.limit = room
    assert await asked.answer(PAGES, seconds - 2) == []
    assert "initialize" in await asked.answer(PAGES, 4)
    assert await asked.known() == ["a", "b"]


@pytest.mark.parametrize("how", ["stop", "start"])
async def test_who_begins_anew_or_registers_its_tools_is_not_asked_later(asked: Asked, how: str) -> None:
    room, asked.discovery.lists.limit = asked.discovery.lists.limit, 100
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    await asked.answer(PAGES)
    asked.discovery.lists.limit = room
    if how == "stop":
        asked.discovery.stop(MAC)
    else:
        asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
        await asked.answer(PAGES)
    assert await asked.answer(PAGES, 3 * module.RETRY_SECONDS) == []


async def test_more_devices_than_may_wait_are_asked_at_their_next_hello(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_RETRIES", 0)
    asked.discovery.lists.limit = 100
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    await asked.answer(PAGES)
    assert await asked.answer(PAGES, 3 * module.RETRY_SECONDS) == []


async def test_the_board_and_its_firmware_are_stored_with_the_tools(asked: Asked) -> None:
    asked.discovery.start(asked.stage.shard, MAC, "xiaozhi")
    await asked.answer(PAGES)
    record = await asked.stage.resources.store.client.hgetall(asked.stage.resources.store.keys.device(MAC))
    assert (record["board"], record["fw"], record["dialect"]) == ("board", "2.1", "xiaozhi")

"""Operators' calls with the real queue and functions of Redis, and a device that answers when the test says so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.operator_calls import MOST_QUEUED, CallRecord, OperatorCalls
from fleet.core.rates import Rate
from fleet.ground.tasks import running
from fleet.roles.worker.calls.device_calls import DeviceCalls, Outcome
from fleet.roles.worker.operator_calls import AT_ONCE, OperatorCallRunner
from fleet.wire.messages import ResponseEvent
from fleet.wire.operator_calls import IN_SESSION, OperatorCall
from tests.support.announced import announcements
from tests.support.virtual_time import elapse
from tests.support.worker_stage import FOR_EVER, MAC, WorkerStage

DONE: dict[str, Any] = {"content": [{"type": "text", "text": "true"}]}


def call(name: str, tool: str = "self.lamp.on", device: str = MAC) -> OperatorCall:
    return OperatorCall(device=device, call=name, tool=tool, arguments={"n": 1})


class Desk:
    """An operator, and a worker's part that makes his calls."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage = stage
        self.queue = OperatorCalls(stage.resources.store)
        self.calls = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 1), stage.counts)

    @property
    def requests(self) -> list[Any]:
        return [one["payload"] for one in self.stage.sent() if one["type"] == "mcp"]

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        runner = OperatorCallRunner(
            self.stage.resources, self.queue, self.calls, lambda: {0: self.stage.shard}, announcements(self.stage)
        )
        async with running("runner", runner.run):
            yield

    async def put(self, one: OperatorCall, within: float = 60) -> str:
        return await self.queue.put(one, within, 3600)

    async def answer(self, request: Any, result: Any = DONE) -> None:
        await self.calls.answer(self.stage.shard, MAC, ResponseEvent(str(request["id"]), result))

    async def sent(self, count: int = 1) -> Any:
        """Return the newest of so many published requests."""
        while len(self.requests) < count:
            await elapse(0.05)
        return self.requests[-1]

    async def ended(self, name: str) -> CallRecord:
        while not (record := await self.queue.find(MAC, name)) or not record.over:
            await elapse(0.05)
        return record


@pytest.fixture
async def desk(stage: WorkerStage) -> Desk:
    await stage.connect()
    return Desk(stage)


async def test_a_call_is_made_once_and_its_outcome_can_be_read(desk: Desk) -> None:
    assert [await desk.put(call("a")) for _ in range(2)] == ["queued", "known"]
    async with desk.worker():
        request = await desk.sent()
        record = await desk.queue.find(MAC, "a")
        assert record is not None and (record.state, record.over) == ("sent", False)
        await desk.answer(request)
        assert ((await desk.ended("a")).state, (await desk.ended("a")).text) == ("ok", "true")
    assert request["params"] == {"name": "self.lamp.on", "arguments": {"n": 1}}
    assert await desk.put(call("a")) == "known", "also after its end, and after the call's own record is gone"
    assert len(desk.requests) == 1


async def test_of_two_answers_that_come_together_the_first_one_is_the_outcome(desk: Desk) -> None:
    await desk.put(call("a"))
    async with desk.worker():
        number = str((await desk.sent())["id"])
        answers = [ResponseEvent(number, DONE), ResponseEvent(number, error="no bulb")]
        taken = [desk.calls.take(MAC, one) for one in answers]
        assert [await one for one in taken if one] == [True, False]
        record = await desk.ended("a")
    assert (record.state, record.text) == ("ok", "true")


async def test_calls_of_two_operators_are_made_one_after_the_other(desk: Desk) -> None:
    for name in ("a", "b", "c"):
        await desk.put(call(name))
    async with desk.worker():
        for count, name in enumerate(("a", "b", "c"), 1):
            request = await desk.sent(count)
            await elapse(0.5)
            assert len(desk.requests) == count, "no rate of the model's calls counts, and none overtakes"
            await desk.answer(request)
            assert (await desk.ended(name)).state == "ok"


async def test_what_the_device_says_and_does_not_say_is_told_as_it_is(desk: Desk, stage: WorkerStage) -> None:
    async with desk.worker():
        await desk.put(call("upgrade", "self.upgrade_firmware"))
        await desk.answer(await desk.sent(1))
        assert (await desk.ended("upgrade")).state == "error", "it answers only if it failed"
        await desk.put(call("silent", "self.reboot"))
        await desk.sent(2)
        assert (await desk.ended("silent")).state == "unknown", "it neither answered nor went away"
        await desk.put(call("reboot", "self.reboot"))
        await desk.sent(3)
        desk.calls.disconnect(MAC)
        assert (await desk.ended("reboot")).state == "ok"
        await desk.put(call("gone"))
        await desk.sent(4)
        desk.calls.disconnect(MAC)
        assert (await desk.ended("gone")).state == "unknown"
        await stage.connect(online=False)
        await desk.put(call("off"))
        assert (await desk.ended("off")).state == "not_sent"
    assert len(desk.requests) == 4


@pytest.mark.requirement("XZ-048")
async def test_an_upgrade_that_is_answered_at_all_has_failed(desk: Desk) -> None:
    async with desk.worker():
        await desk.put(call("upgrade", "self.upgrade_firmware"))
        await desk.answer(await desk.sent())
        record = await desk.ended("upgrade")
    assert record.state == "error"
    assert record.text == "the firmware was not installed; the device goes on with the one that it has"


async def test_a_photo_for_an_operator_comes_with_a_fresh_token_for_its_upload(desk: Desk, stage: WorkerStage) -> None:
    stage.redis.run("HSET", stage.resources.store.keys.device(MAC), "host", "h.example")
    await desk.put(call("photo", "self.camera.take_photo"))
    async with desk.worker():
        await desk.sent()
        await elapse(1)
    assert [one["method"] for one in desk.requests] == ["initialize", "tools/call"]
    assert desk.requests[0]["params"]["capabilities"]["vision"]["token"]


async def test_a_call_that_waited_for_too_long_is_not_sent(desk: Desk) -> None:
    await desk.put(call("a"), within=5)
    await elapse(6)
    async with desk.worker():
        assert (await desk.ended("a")).state == "not_sent"
    assert desk.requests == []


async def test_the_next_owner_ends_a_call_that_was_published_and_never_repeats_it(desk: Desk) -> None:
    await desk.put(call("a"))
    async with desk.worker():
        await desk.sent()  # this worker dies while the device has the call
        task = next(one for one in asyncio.all_tasks() if one.get_name() == f"operator calls {MAC}")
        task.cancel()
    async with desk.worker():
        await elapse(1)
        await desk.answer(desk.requests[0])
        assert (await desk.ended("a")).state == "ok"
    assert len(desk.requests) == 1


async def test_a_call_whose_own_record_is_gone_is_unknown_and_not_sent_again(desk: Desk) -> None:
    await desk.put(call("a"))
    async with desk.worker():
        await desk.sent()
        task = next(one for one in asyncio.all_tasks() if one.get_name() == f"operator calls {MAC}")
        task.cancel()
    await elapse(3000)  # nobody owns the shard for longer than Redis remembers a call
    async with desk.worker():
        assert (await desk.ended("a")).state == "unknown"
    assert len(desk.requests) == 1


async def test_a_worker_without_the_lease_sends_and_ends_nothing(desk: Desk, stage: WorkerStage) -> None:
    stage.redis.run("DEL", stage.resources.store.keys.own(0))
    assert await Leases(stage.resources.store, "other", FOR_EVER).take(0)
    await desk.put(call("a"))
    async with desk.worker():
        await elapse(5)
    record = await desk.queue.find(MAC, "a")
    assert record is not None and record.state == "queued"
    assert desk.requests == []


async def test_a_full_queue_refuses_and_the_inbox_is_another_stream(desk: Desk, stage: WorkerStage) -> None:
    for number in range(MOST_QUEUED // 2):
        assert await desk.put(call(f"c{number}")) == "queued"
    assert await desk.put(call("more")) == "full"
    assert await desk.queue.find(MAC, "more") is None
    keys = stage.resources.store.keys
    assert stage.redis.run("XLEN", keys.inbox(0)) == 0


async def test_a_call_for_an_idle_device_is_not_sent_in_a_session(desk: Desk) -> None:
    await desk.stage.open("s1")
    await desk.put(msgspec.structs.replace(call("a"), idle=True))
    await desk.put(call("b"))
    async with desk.worker():
        record = await desk.ended("a")
        assert (record.state, record.text) == ("not_sent", IN_SESSION)
        await desk.answer(await desk.sent())
        assert (await desk.ended("b")).state == "ok"


async def test_a_call_that_was_sent_before_the_session_began_is_not_reported_as_unsent(desk: Desk) -> None:
    await desk.put(msgspec.structs.replace(call("a"), idle=True))
    async with desk.worker():
        await desk.sent()  # this worker dies while the device has the call
        task = next(one for one in asyncio.all_tasks() if one.get_name() == f"operator calls {MAC}")
        task.cancel()
    await desk.stage.open("s1")
    async with desk.worker():
        await elapse(1)
        await desk.answer(desk.requests[0])
        assert (await desk.ended("a")).state == "ok"
    assert len(desk.requests) == 1


async def test_a_session_that_begins_after_a_call_was_read_still_keeps_an_idle_call_away(desk: Desk) -> None:
    await desk.put(call("first"))
    await desk.put(msgspec.structs.replace(call("a"), idle=True))
    async with desk.worker():
        request = await desk.sent()
        await desk.stage.open("s1")
        await desk.answer(request)
        assert ((await desk.ended("a")).state, (await desk.ended("a")).text) == ("not_sent", IN_SESSION)
    assert len(desk.requests) == 1


class HeldCalls(DeviceCalls):
    """Calls that are not published before the test lets them."""

    def __init__(self, stage: WorkerStage) -> None:
        super().__init__(stage.resources.calls, stage.resources.reports, Rate(1, 1), stage.counts)
        self.begun, self.free = 0, asyncio.Event()

    async def call(self, *arguments: Any) -> Outcome:
        self.begun += 1
        await self.free.wait()
        return await super().call(*arguments)


async def test_of_many_calls_at_once_a_few_are_started_at_a_time_so_that_turns_come_between(desk: Desk) -> None:
    desk.calls = held = HeldCalls(desk.stage)
    macs = [f"02:00:00:00:01:{number:02x}" for number in range(3 * AT_ONCE)]
    for mac in macs:
        assert await desk.put(call("a", device=mac)) == "queued"
    async with desk.worker():
        while held.begun < AT_ONCE:
            await elapse(0.05)
        await elapse(1.0)
        assert held.begun == AT_ONCE
        held.free.set()
        for mac in macs:
            while not (record := await desk.queue.find(mac, "a")) or not record.over:
                await elapse(0.05)
    assert held.begun == len(macs)


async def test_a_call_has_the_form_of_the_devices_dialect(desk: Desk) -> None:
    await desk.stage.resources.devices.describe(MAC, {"dialect": "registrar"})
    await desk.put(call("a"))
    async with desk.worker():
        await elapse(1)
    [sent] = desk.stage.sent()
    assert sent["method"] == "mcp/tool/execute"

import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.core.ports import ToolCall
from fleet.core.rates import Rate
from fleet.core.toolbox import Toolbox
from fleet.ground.errors import Unavailable
from fleet.ground.tracing import spans
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.calls.device_tools import MOST_SLOW, DeviceLink, DeviceTools, renew_camera_token
from fleet.roles.worker.turns.deadline import TurnDeadline
from fleet.roles.worker.turns.speech import AnswerSpeech
from fleet.wire.edge_messages import UtteranceEvent
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import ResponseEvent
from tests.support.noted_spans import NotedTracer
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

PHOTO, LAMP = "self.camera.take_photo", "self.lamp.on"
DONE: dict[str, Any] = {"content": [{"type": "text", "text": "true"}]}


class OwnTools:
    """The tools of a device, which answers every call at once."""

    def __init__(self, stage: WorkerStage, session: Any) -> None:
        self.stage = stage
        self.calls = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(100, 100), stage.counts)
        heard = UtteranceEvent(device=MAC, session="s1", turn="t1", text="x")
        speech = AnswerSpeech(stage.shard, stage.resources.inboxes, session, heard)
        link = DeviceLink(stage.resources, self.calls, stage.shard, session)
        self.deadline = TurnDeadline(60, speech)
        specs = [ToolSpec(name=name, description="", input_schema={"type": "object"}) for name in (PHOTO, LAMP)]
        self.tools = DeviceTools(Toolbox(specs), link, "t1", self.deadline, 10)
        self.running = self.most = 0

    async def call(self, name: str, call: str) -> str:
        offered = next(one.name for one in self.tools.offers if name in one.name)
        return await self.tools.call(ToolCall(call, offered, "{}"))

    async def serve(self) -> None:
        """Answer each request after a second."""
        async with asyncio.TaskGroup() as group:
            done = 0
            while True:
                requests = [one["payload"] for one in self.stage.sent() if one["type"] == "mcp"]
                for request in requests[done:]:
                    group.create_task(self._answer(request))
                done = len(requests)
                await elapse(0.01)

    async def _answer(self, request: Any) -> None:
        if request["method"] != "tools/call":
            return
        self.running += 1
        self.most = max(self.most, self.running)
        await elapse(1)
        self.running -= 1
        await self.calls.answer(self.stage.shard, MAC, ResponseEvent(str(request["id"]), DONE))

    async def call_all(self, *names: str) -> list[str]:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(self.serve())
            async with self.deadline.limit(), asyncio.TaskGroup() as calling:
                tasks = [calling.create_task(self.call(name, f"c{number}")) for number, name in enumerate(names)]
            serving.cancel()
        return [task.result() for task in tasks]


@pytest.fixture
async def own(stage: WorkerStage) -> OwnTools:
    session = await stage.open("s1")
    await stage.begin("t1", "x")
    return OwnTools(stage, session)


async def test_quick_tools_run_side_by_side(own: OwnTools) -> None:
    assert await own.call_all("lamp", "lamp", "lamp") == ["true"] * 3
    assert own.most == 3


async def test_slow_tools_wait_for_each_other_and_are_counted(own: OwnTools) -> None:
    answers = await own.call_all(*["photo"] * (MOST_SLOW + 1))
    assert answers.count("true") == MOST_SLOW and "not done" in next(one for one in answers if one != "true")
    assert own.most == 1


async def test_a_photo_comes_with_a_fresh_token_for_its_upload(own: OwnTools) -> None:
    own.stage.redis.run("HSET", own.stage.resources.store.keys.device(MAC), "host", "h.example")
    await own.call_all("photo")
    first = own.stage.sent()[0]["payload"]
    assert first["method"] == "initialize" and first["params"]["capabilities"]["vision"]["token"]


async def test_without_the_store_the_model_is_told_nothing(own: OwnTools) -> None:
    own.stage.connection.fault = RedisConnectionError("away")
    with pytest.raises(Unavailable):
        await own.call("lamp", "c1")
    assert own.stage.sent() == []


async def test_a_call_with_bad_arguments_never_reaches_the_device(own: OwnTools) -> None:
    assert await own.tools.call(ToolCall("c1", "nonsense", "{}"))
    assert own.stage.sent() == []


async def test_the_trace_of_a_call_has_its_outcome_and_result(stage: WorkerStage) -> None:
    one, tracer = OwnTools(stage, await stage.open("s1")), NotedTracer()
    await stage.begin("t1", "x")
    spans.enable(tracer, pii=True)
    try:
        assert await one.call_all("lamp_on") == ["true"]
        await stage.connect(online=False, epoch=2)
        async with one.deadline.limit():
            failure = await one.call("lamp_on", "c9")
    finally:
        spans.disable()
    done, failed = tracer.made
    assert (done.name, done.failure) == (f"execute_tool {LAMP}", "")
    assert (done.attributes["fleet.outcome"], done.attributes["gen_ai.tool.call.result"]) == ("ok", "true")
    assert failed.failure == failed.attributes["fleet.outcome"] == "not_sent"
    assert str(failed.attributes["gen_ai.tool.call.result"]) in failure


@pytest.mark.parametrize(
    ("dialect", "tool", "sent"), [("xiaozhi", PHOTO, 1), ("registrar", PHOTO, 0), ("xiaozhi", LAMP, 0)]
)
async def test_only_devices_with_a_camera_get_a_token_and_only_before_a_photo(
    own: OwnTools, dialect: str, tool: str, sent: int
) -> None:
    stage = own.stage
    stage.redis.run("HSET", stage.resources.store.keys.device(MAC), "host", "h.example")
    await renew_camera_token(stage.resources, stage.shard, MAC, dialect, tool)
    assert len(stage.session.published) == sent


@pytest.mark.parametrize(("dialect", "source"), [("xiaozhi", "device"), ("registrar", "program")])
async def test_whose_the_tools_are_tells_the_dialect(stage: WorkerStage, dialect: str, source: str) -> None:
    session = await stage.open("s1", dialect=dialect)
    link = DeviceLink(stage.resources, OwnTools(stage, session).calls, stage.shard, session)
    assert link.source == source

import pytest

from fleet.roles.worker.sessions.discovery import Discovery
from fleet.roles.worker.sessions.registration import Registrations
from fleet.wire.jsonrpc import BAD_PARAMS
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import BadRequestEvent, RegisterToolsEvent
from tests.support.worker_stage import MAC, WorkerStage

LAMP = ToolSpec(name="lamp", description="", input_schema={"type": "object"})
FAN = ToolSpec(name="fan", description="", input_schema={"type": "object"})


@pytest.fixture
def registrations(stage: WorkerStage) -> Registrations:
    return Registrations(stage.resources, Discovery(stage.resources, stage.counts), stage.counts)


async def test_registered_tools_replace_earlier_ones(stage: WorkerStage, registrations: Registrations) -> None:
    for tools in ((LAMP, FAN), (LAMP,)):
        await registrations.register(stage.shard, MAC, RegisterToolsEvent("1", None, tools, ("lamp",)), "registrar")
    assert [tool.name for tool in await stage.resources.tools.read(MAC)] == ["lamp"]
    assert [message["id"] for message in stage.sent()] == ["1", "1"]


async def test_a_device_registers_only_its_own_tools(stage: WorkerStage, registrations: Registrations) -> None:
    foreign = RegisterToolsEvent("1", "00:00:00:00:00:01", (LAMP,), ("lamp",))
    await registrations.register(stage.shard, MAC, foreign, "registrar")
    [answer] = stage.sent()
    assert answer["error"]["code"] == BAD_PARAMS and await stage.resources.tools.read(MAC) == ()


async def test_registrations_of_one_device_are_limited(stage: WorkerStage, registrations: Registrations) -> None:
    for _ in range(30):
        await registrations.register(stage.shard, MAC, RegisterToolsEvent("1", None, (LAMP,), ("lamp",)), "registrar")
    assert "error" in stage.sent()[-1] and sum(stage.counts.values()) > 0


async def test_a_bad_request_gets_its_error(stage: WorkerStage, registrations: Registrations) -> None:
    registrations.reject(stage.shard, MAC, BadRequestEvent("7", BAD_PARAMS, "no tools"), "registrar")
    assert stage.sent()[0]["error"] == {"code": BAD_PARAMS, "message": "no tools"}

"""What devices and registrars write into the schemas of their tools, and what they are sent."""

import json
from collections.abc import Iterator

import pytest

from fleet.core.ports import CallsAsked, ToolCall
from tests.integration.worker.registrar import hear_call, register, type_text
from tests.integration.worker.scene import Scene, says, text, tool
from tests.support.hostile_schemas import FREE, Lure, hostile, run_lure


@pytest.fixture(scope="module")
def lure() -> Iterator[Lure]:
    with run_lure() as one:
        yield one


def asks_all(calls: dict[str, object]) -> list[CallsAsked]:
    wanted = [ToolCall(f"c{at}", name, json.dumps(arguments)) for at, (name, arguments) in enumerate(calls.items())]
    return [CallsAsked(tuple(wanted))]


async def test_a_device_is_sent_what_its_schemas_allow(stage: Scene) -> None:
    tools = [tool(f"self.{name}", inputSchema={"type": "object", **schema}) for name, (schema, _) in FREE.items()]
    session = await stage.prepare(*tools)
    stage.llm.script = [asks_all({name: given for name, (_, given) in FREE.items()}), says("Done.")]
    await stage.utter(session, "please")
    sent = {}
    for _ in FREE:
        request = await stage.device.hear_request("tools/call")
        sent[request["params"]["name"].removeprefix("self.")] = request["params"]["arguments"]
        await stage.device.answer(request, result=text("true"))
    assert sent == {name: given for name, (_, given) in FREE.items()}


async def test_hostile_schemas_of_a_device_harm_nobody_and_fetch_nothing(stage: Scene, lure: Lure) -> None:
    schemas = hostile(lure.url)
    pages = [[tool(f"self.{name}", inputSchema=schema)] for name, (schema, _) in schemas.items()]
    await stage.discover(*pages)
    await stage.tools(len(pages))
    session = await stage.greet()
    stage.llm.script = [asks_all({name: given for name, (_, given) in schemas.items()}), says("Done.")]
    await stage.utter(session, "please")
    sent = {}
    for _ in schemas:
        request = await stage.device.hear_request("tools/call")
        sent[request["params"]["name"].removeprefix("self.")] = request["params"]["arguments"]
        await stage.device.answer(request, result=text("true"))
    assert sent == {name: given for name, (_, given) in schemas.items()}
    assert (await stage.spoken())[-1:] == ["Done."]
    assert lure.asked == []


async def test_a_device_is_not_sent_what_its_schema_forbids_and_the_model_is_told_which(stage: Scene) -> None:
    closed = {"type": "object", "properties": {"x": {"type": "integer", "maximum": 9}}, "additionalProperties": False}
    session = await stage.prepare(tool("self.closed", inputSchema=closed))
    stage.llm.script = [asks_all({"closed": {"x": 10, "y": 1}}), says("Sorry.")]
    await stage.utter(session, "please")
    assert (await stage.spoken())[-1:] == ["Sorry."]
    told = stage.llm.asked[-1][0][-1].text
    assert "argument 'x' must be a whole number of at most 9, but is 10" in told
    assert "argument 'y' is not known; there are: x" in told


async def test_schemas_of_a_registrar_are_treated_the_same(stage: Scene, lure: Lure) -> None:
    schemas = {f"h_{name}": pair for name, pair in hostile(lure.url).items()} | FREE
    tools = [{"name": name, "main_type": "remote", "parameters": schema} for name, (schema, _) in schemas.items()]
    assert "result" in await register(stage.device, *tools)
    for at in range(0, len(schemas), 10):
        part = dict(list(schemas.items())[at : at + 10])
        stage.llm.script = [asks_all({name: given for name, (_, given) in part.items()}), says("Done.")]
        await type_text(stage, "please")
        sent = {}
        for _ in part:
            call = await hear_call(stage.device)
            sent[call["params"]["tool_name"]] = call["params"]["tool_input"]
            await stage.device.say({"jsonrpc": "2.0", "id": call["id"], "result": "true"})
        assert sent == {name: given for name, (_, given) in part.items()}
        while (await stage.device.hear()).get("params", {}).get("type") != "final":
            pass
    assert lure.asked == []

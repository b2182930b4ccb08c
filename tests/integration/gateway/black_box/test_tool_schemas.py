"""What clients write into the schemas of their tools, and what their callbacks get (sections 4.6, 5.4, 11.5)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.gateway_client import GatewayClient
from tests.support.hostile_schemas import FREE, Lure, hostile, run_lure
from tests.support.openai_server import spoken
from tests.support.scripted_llm import ScriptedLlm, asks, roles


@pytest.fixture(scope="module")
def lure() -> Iterator[Lure]:
    with run_lure() as one:
        yield one


def defined(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": name, "parameters": {"type": "object", **schema}}


async def call_all(client: GatewayClient, llm: ScriptedLlm, words: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """Let the model call each tool; return what the callbacks got."""
    llm.when(words, asks(*((name, given) for name, (_, given) in schemas.items())), spoken("好的"))
    registered = await client.register(*(defined(name, schema) for name, (schema, _) in schemas.items()))
    assert registered["count"] == len(schemas), registered
    turn = await client.turn(words, {name: lambda _: "done" for name in schemas})
    assert turn.content == "好的"
    return {one["tool_name"]: one["arguments"] for one in turn.all("tool_callback")}


async def test_a_callback_gets_what_the_schema_allows(client: GatewayClient, llm: ScriptedLlm) -> None:
    sent = await call_all(client, llm, "什么都可以", FREE)
    assert sent == {name: given for name, (_, given) in FREE.items()}


async def test_hostile_schemas_harm_nobody_and_fetch_nothing(
    client: GatewayClient, llm: ScriptedLlm, lure: Lure
) -> None:
    schemas = hostile(lure.url)
    sent = await call_all(client, llm, "恶意的参数", schemas)
    assert sent == {name: given for name, (_, given) in schemas.items()}
    assert lure.asked == []


async def test_the_model_is_told_which_argument_is_refused_and_why(client: GatewayClient, llm: ScriptedLlm) -> None:
    words = "太大的参数"
    wrong, right = {"x": 10, "y": 1}, {"x": 9}
    llm.when(words, asks(("closed", wrong)), asks(("closed", right)), spoken("好的"))
    rule = {"properties": {"x": {"type": "integer", "maximum": 9}}, "additionalProperties": False}
    await client.register(defined("closed", rule))
    turn = await client.turn(words, {"closed": lambda _: "done"})
    assert [one["arguments"] for one in turn.all("tool_callback")] == [right]
    told = roles(llm.asked(words)[1], "tool")[-1]
    assert "argument 'x' must be a whole number of at most 9, but is 10" in told
    assert "argument 'y' is not known; there are: x" in told


@pytest.mark.parametrize(
    "schema",
    [
        '{"type":"object","properties":{"x":{"minLength":1e999}}}',
        '{"type":"object","properties":{"x":{"maxItems":-1e999}}}',
        '{"type":"object","properties":{"x":{"minimum":1e999}}}',
        '{"type":"object","properties":{"x":' + '{"anyOf":[' * 2000 + "{}" + "]}" * 2000 + "}}",
        '{"type":"object","properties":{"x":{"minLength":' + "9" * 4000 + "}}}",
    ],
)
async def test_a_schema_that_no_parser_expects_leaves_the_connection_usable(
    client: GatewayClient, llm: ScriptedLlm, schema: str
) -> None:
    await client.send_raw(
        '{"type":"register_tools","tools":[{"name":"t","description":"d","parameters":' + schema + "}]}"
    )
    assert (await client.next())["type"] in ("tools_registered", "error")
    llm.when("还在吗", spoken("在"))
    assert (await client.turn("还在吗")).content == "在"


def large(names: int) -> dict[str, Any]:
    big = {"properties": {f"{'n' * 70}{at}": {} for at in range(names)}}
    return {"properties": {str(at): {"$ref": "#/$defs/big"} for at in range(60)}, "$defs": {"big": big}}


async def test_a_schema_of_nearly_a_megabyte_is_refused(client: GatewayClient, llm: ScriptedLlm) -> None:
    registered = await client.register(defined("big", large(8_000)))
    assert registered["tools"][0]["code"] == "TOOL_REGISTRATION_FAILED"
    assert "16000 characters" in registered["tools"][0]["error"]
    llm.when("还在吗", spoken("在"))
    assert (await client.turn("还在吗")).content == "在"


async def test_a_schema_as_large_as_may_be_is_used(client: GatewayClient, llm: ScriptedLlm) -> None:
    sent = await call_all(client, llm, "很大的参数", {"big": (large(150), {"1": {"a": 1}})})
    assert sent == {"big": {"1": {"a": 1}}}
    assert len(json.dumps(llm.asked("很大的参数")[0]["tools"])) < 150_000

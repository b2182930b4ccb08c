"""`register_tools` and `tools_registered` (sections 4.6, 5.5, 7.3, 8.4, 9.3, 11.5)."""

from typing import Any

import pytest

from tests.support.gateway_client import BATTERY, VOLUME, GatewayClient, gateway_client, tool
from tests.support.gateway_messages import Message
from tests.support.gateway_process import MOST_TOOLS, GatewayProcess
from tests.support.scripted_llm import ScriptedLlm, offers

LONGEST = "a" * 64


async def offered(client: GatewayClient, llm: ScriptedLlm, words: str) -> dict[str, Any]:
    """Return what the model is offered now."""
    await client.turn(words)
    return offers(llm.asked(words)[-1])


def statuses(confirmation: Message) -> dict[str, str]:
    return {entry["name"]: entry["status"] for entry in confirmation["tools"]}


@pytest.mark.requirement("GW-060", "GW-061")
async def test_registered_tools_are_confirmed_in_their_order(client: GatewayClient) -> None:
    confirmation = await client.register(BATTERY, VOLUME)
    assert confirmation["type"] == "tools_registered"
    assert confirmation["count"] == 2
    expected = [{"name": name, "status": "registered"} for name in ("get_battery", "set_volume")]
    assert confirmation["tools"] == expected
    assert await client.settled() == []


@pytest.mark.requirement("GW-062")
async def test_registered_tools_are_offered_to_the_model(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.register(BATTERY, VOLUME)
    found = await offered(client, llm, "看看有什么工具")
    assert found["get_battery"]["description"] == BATTERY["description"]
    volume = found["set_volume"]["parameters"]
    assert volume["properties"]["volume"]["type"] == "integer"
    assert volume["required"] == ["volume"]
    assert "get_weather" in found


@pytest.mark.requirement("GW-063")
@pytest.mark.parametrize(
    "name",
    ["get_battery", "device.light.turn_on", "weather.get_current", "sensor.temperature.read", "_x", "a", "A1", LONGEST],
)
async def test_a_proper_name_is_registered_as_it_is(client: GatewayClient, name: str) -> None:
    assert statuses(await client.register(tool(name))) == {name: "registered"}


@pytest.mark.requirement("GW-064")
@pytest.mark.parametrize(
    "name",
    ["1tool", "tool.", "tool..name", ".tool", "", "a-b", "a b", "a/b", "工具", "a\n", "tool.name.", LONGEST + "b", "é"],
)
async def test_an_improper_name_fails_beside_a_proper_one(client: GatewayClient, name: str) -> None:
    confirmation = await client.register(BATTERY, tool(name))
    assert [entry["status"] for entry in confirmation["tools"]] == ["registered", "failed"]
    assert confirmation["tools"][1]["name"] == name[:64]
    assert confirmation["count"] == 1


@pytest.mark.requirement("GW-064", "GW-070")
@pytest.mark.parametrize(
    "broken",
    [
        {"description": "无名"},
        {"name": 7, "description": "x", "parameters": {}},
        {"name": None, "description": "x", "parameters": {}},
        {"name": "no_description", "parameters": {"type": "object", "properties": {}}},
        {"name": "description_of_no_text", "description": 7, "parameters": {"type": "object", "properties": {}}},
        "get_battery",
        None,
        [],
    ],
)
async def test_a_damaged_tool_does_not_cost_the_others(client: GatewayClient, broken: Any) -> None:
    await client.send("register_tools", tools=[broken, VOLUME])
    confirmation = await client.next()
    assert confirmation["type"] == "tools_registered"
    assert confirmation["tools"][-1] == {"name": "set_volume", "status": "registered"}
    assert await client.settled() == []


@pytest.mark.requirement("GW-065")
@pytest.mark.parametrize(
    "parameters",
    [
        None,
        "object",
        [],
        {"type": "nonsense"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"type": "text"}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": "x"}}},
        {"type": "object", "properties": {}, "required": "a"},
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": "low"}}},
    ],
)
async def test_parameters_that_are_no_schema_fail_with_their_code(client: GatewayClient, parameters: Any) -> None:
    broken = {"name": "broken", "description": "x", "parameters": parameters}
    confirmation = await client.register(BATTERY, broken)
    assert statuses(confirmation) == {"get_battery": "registered", "broken": "failed"}
    assert "INVALID_TOOL_PARAMETERS" in str(confirmation["tools"][1])
    assert await client.settled() == []


@pytest.mark.requirement("GW-066")
async def test_every_part_of_a_schema_that_the_document_names_reaches_the_model(
    client: GatewayClient, llm: ScriptedLlm
) -> None:
    kinds = {kind: {"type": kind, "description": f"a {kind}"} for kind in ("string", "number", "boolean", "object")}
    described = tool("kinds", **kinds, list={"type": "array", "items": {"type": "string"}})
    described["parameters"]["properties"]["object"]["properties"] = {"inner": {"type": "string"}}
    described["parameters"]["properties"]["string"] |= {"enum": ["可选值1", "可选值2"], "default": "可选值1"}
    assert statuses(await client.register(described)) == {"kinds": "registered"}
    sent = (await offered(client, llm, "各种参数"))["kinds"]["parameters"]["properties"]
    assert {name: sent[name]["type"] for name in kinds} == {name: name for name in kinds}
    assert sent["list"]["type"] == "array"
    assert sent["string"]["enum"] == ["可选值1", "可选值2"]


@pytest.mark.requirement("GW-067")
async def test_a_name_that_comes_twice_in_a_message_fails_the_second_time(client: GatewayClient) -> None:
    confirmation = await client.register(BATTERY, VOLUME, {**BATTERY, "description": "另一个"})
    assert [entry["status"] for entry in confirmation["tools"]] == ["registered", "registered", "failed"]
    assert "Tool name already exists" in confirmation["tools"][2]["error"]
    assert confirmation["count"] == 2


@pytest.mark.requirement("GW-067")
async def test_a_name_that_was_registered_before_fails_and_the_first_tool_stays(
    client: GatewayClient, llm: ScriptedLlm
) -> None:
    await client.register(BATTERY)
    confirmation = await client.register({**BATTERY, "description": "另一个"}, VOLUME)
    assert statuses(confirmation) == {"get_battery": "failed", "set_volume": "registered"}
    assert "Tool name already exists" in confirmation["tools"][0]["error"]
    assert (await offered(client, llm, "谁先注册"))["get_battery"]["description"] == BATTERY["description"]


@pytest.mark.requirement("GW-068")
async def test_a_registration_in_which_nothing_succeeds_gets_one_answer(client: GatewayClient) -> None:
    await client.register(BATTERY)
    message = await client.register(BATTERY)
    assert message["type"] in ("tools_registered", "error")
    assert message.get("count", 0) == 0
    assert "TOOL_REGISTRATION_FAILED" in str(message)
    assert await client.settled() == []


@pytest.mark.requirement("GW-069")
async def test_thirty_two_tools_are_registered_and_no_more(client: GatewayClient, llm: ScriptedLlm) -> None:
    confirmation = await client.register(*(tool(f"tool_{number}") for number in range(33)))
    assert confirmation["count"] == 32
    assert statuses(confirmation)["tool_32"] == "failed"
    assert "TOOL_REGISTRATION_FAILED" in str(confirmation["tools"][-1])
    found = await offered(client, llm, "三十二个工具")
    assert [number for number in range(33) if f"tool_{number}" not in found] == [32]


@pytest.mark.requirement("GW-069")
async def test_the_limit_counts_over_several_messages(unusual: GatewayProcess) -> None:
    async with gateway_client(unusual.url) as client:
        names = [f"part_{number}" for number in range(MOST_TOOLS + 1)]
        found = [statuses(await client.register(tool(name)))[name] for name in names[:MOST_TOOLS]]
        last = await client.register(tool(names[-1]))
    assert found == ["registered"] * MOST_TOOLS
    assert "TOOL_REGISTRATION_FAILED" in str(last)


@pytest.mark.requirement("GW-060")
async def test_an_empty_list_is_confirmed(client: GatewayClient) -> None:
    confirmation = await client.register()
    assert (confirmation["type"], confirmation["count"], confirmation["tools"]) == ("tools_registered", 0, [])


@pytest.mark.requirement("GW-071")
async def test_each_connection_has_its_own_tools(gateway: GatewayProcess, llm: ScriptedLlm) -> None:
    async with gateway_client(gateway.url) as one, gateway_client(gateway.url) as other:
        await one.register(tool("only_mine"))
        confirmation = await other.register(tool("only_mine"))
        await other.register(tool("only_theirs"))
        assert confirmation["count"] == 1
        assert "only_theirs" not in await offered(one, llm, "我的工具")


@pytest.mark.requirement("GW-072")
async def test_tools_are_gone_with_their_connection(gateway: GatewayProcess, llm: ScriptedLlm) -> None:
    async with gateway_client(gateway.url) as client:
        await client.turn("先有会话")
        await client.register(tool("gone_soon"))
        session = client.session
    async with gateway_client(gateway.url) as client:
        await client.send("start_session", session_id=session)
        await client.expect("status")
        assert "gone_soon" not in await offered(client, llm, "工具还在吗")


@pytest.mark.requirement("GW-072")
async def test_tools_stay_when_the_connection_begins_another_session(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.register(tool("stays"))
    await client.send("start_session")
    await client.next()
    assert "stays" in await offered(client, llm, "换了会话")


@pytest.mark.requirement("GW-073")
async def test_a_gateway_may_refuse_all_tools(bare: GatewayProcess, llm: ScriptedLlm) -> None:
    async with gateway_client(bare.url) as client:
        message = await client.register(BATTERY)
        assert (message["type"], message.get("code")) == ("error", "TOOL_REGISTRATION_FAILED")
        assert await offered(client, llm, "没有客户端工具") == {}

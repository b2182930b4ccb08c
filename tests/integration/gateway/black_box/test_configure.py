"""`configure` (sections 4.2, 6.3, 12.3): what reaches the model, what is refused, and that nothing is answered."""

from typing import Any

import pytest

from tests.support.gateway_client import BATTERY, GatewayClient, gateway_client
from tests.support.gateway_process import GatewayProcess
from tests.support.scripted_llm import ScriptedLlm, roles


@pytest.mark.requirement("GW-030", "GW-036")
async def test_without_configure_the_model_gets_the_defaults(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.turn("默认配置")
    (body,) = llm.asked("默认配置")
    assert (body["temperature"], body["max_tokens"]) == (0.7, 2048)
    assert body["model"] == "Qwen3-30B-A3B"


@pytest.mark.requirement("GW-031", "GW-032")
@pytest.mark.parametrize(("temperature", "tokens"), [(0.0, 1), (1.0, 2048), (0, 100), (0.35, 64)])
async def test_what_is_configured_reaches_the_model(
    client: GatewayClient, llm: ScriptedLlm, temperature: float, tokens: int
) -> None:
    words = f"配置{temperature}和{tokens}"
    await client.send("configure", temperature=temperature, max_tokens=tokens)
    await client.turn(words)
    (body,) = llm.asked(words)
    assert (body["temperature"], body["max_tokens"]) == (temperature, tokens)


@pytest.mark.requirement("GW-032")
async def test_more_tokens_than_the_limit_become_the_limit(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.send("configure", max_tokens=100_000)
    await client.turn("太多的令牌")
    assert llm.asked("太多的令牌")[0]["max_tokens"] == 2048


@pytest.mark.requirement("GW-033")
async def test_each_configure_changes_only_what_it_names(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.send("configure", temperature=0.1)
    await client.send("configure", max_tokens=77)
    await client.send("configure", enable_context=True)
    await client.send("configure")
    await client.turn("一项一项")
    (body,) = llm.asked("一项一项")
    assert (body["temperature"], body["max_tokens"]) == (0.1, 77)


@pytest.mark.requirement("GW-034")
@pytest.mark.parametrize(
    "members",
    [
        {"temperature": 1.01},
        {"temperature": -0.1},
        {"temperature": "hot"},
        {"temperature": True},
        {"max_tokens": 0},
        {"max_tokens": -5},
        {"max_tokens": 1.5},
        {"max_tokens": "many"},
        {"enable_context": "perhaps"},
        {"enable_context": 7},
        {"enable_context": 1},
        {"enable_context": "true"},
        {"stream": "perhaps"},
    ],
)
async def test_an_impossible_value_is_refused_and_changes_nothing(
    client: GatewayClient, llm: ScriptedLlm, members: dict[str, Any]
) -> None:
    words = f"不可能的配置{members}"
    good = {"temperature": 0.2, "max_tokens": 99, "enable_context": False}
    await client.send("configure", **good)
    await client.send("configure", **{"temperature": 0.9, "max_tokens": 5, **members})
    assert (await client.expect("error"))["code"] == "INVALID_MESSAGE"
    await client.turn(words)
    (body,) = llm.asked(words)
    assert (body["temperature"], body["max_tokens"]) == (0.2, 99)


@pytest.mark.requirement("GW-035")
async def test_nothing_comes_between_configure_and_tools_registered(client: GatewayClient) -> None:
    await client.send("configure", temperature=0.5, max_tokens=100, enable_context=True, unknown="ignored")
    await client.send("register_tools", tools=[BATTERY])
    assert (await client.next())["type"] == "tools_registered"
    assert await client.settled() == []


@pytest.mark.requirement("GW-035")
async def test_nothing_comes_between_an_answer_and_the_next_registration(client: GatewayClient) -> None:
    await client.turn("先说一句")
    await client.send("register_tools", tools=[BATTERY])
    assert (await client.next())["type"] == "tools_registered"


@pytest.mark.requirement("GW-036")
async def test_without_context_the_model_hears_only_the_last_words(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.turn("我叫小明，没有上下文")
    await client.turn("我刚才问什么？没有上下文")
    body = llm.asked("我刚才问什么？没有上下文")[-1]
    assert roles(body, "user", "assistant") == ["我刚才问什么？没有上下文"]


@pytest.mark.requirement("GW-037")
async def test_with_context_the_model_hears_what_was_said_before(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.send("configure", enable_context=True)
    first = await client.turn("我叫小明，有上下文")
    await client.turn("我刚才问什么？有上下文")
    body = llm.asked("我刚才问什么？有上下文")[-1]
    assert roles(body, "user", "assistant") == ["我叫小明，有上下文", first.content, "我刚才问什么？有上下文"]


@pytest.mark.requirement("GW-037")
async def test_context_can_be_switched_off_again(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.send("configure", enable_context=True)
    await client.turn("开着的时候说的")
    await client.send("configure", enable_context=False)
    await client.turn("关掉以后说的")
    assert roles(llm.asked("关掉以后说的")[-1], "user") == ["关掉以后说的"]


@pytest.mark.requirement("GW-038")
async def test_connections_are_configured_one_by_one(gateway: GatewayProcess, llm: ScriptedLlm) -> None:
    async with gateway_client(gateway.url) as one, gateway_client(gateway.url) as other:
        await one.send("configure", temperature=0.9)
        await one.settled()
        await other.turn("另一个连接的温度")
    assert llm.asked("另一个连接的温度")[0]["temperature"] == 0.7

"""Calls of a client's tools (sections 4.7, 5.1, 5.4, 7.5, 7.7, 9.4, 9.8, 11.5)."""

import asyncio
from typing import Any

import pytest

from tests.support.gateway_client import BATTERY, VOLUME, GatewayClient, gateway_client, tool
from tests.support.gateway_process import GatewayProcess
from tests.support.openai_server import Answer, spoken
from tests.support.scripted_llm import ScriptedLlm, asks, offers, roles
from tests.support.until import until


def told(llm: ScriptedLlm, words: str) -> str:
    """Return what the model was told of its calls, all results in one text."""
    return "\n".join(roles(llm.asked(words)[-1], "tool"))


@pytest.mark.requirement("GW-080", "GW-081", "GW-082")
async def test_a_call_goes_to_the_client_and_its_result_to_the_model(client: GatewayClient, llm: ScriptedLlm) -> None:
    words = "我的电量还剩多少？"
    llm.when(words, asks(("get_battery", {})), spoken("您的设备电量还剩85%"))
    await client.register(BATTERY)
    turn = await client.turn(words, {"get_battery": lambda _: {"level": 85, "charging": False}})
    assert turn.content == "您的设备电量还剩85%"
    kinds = [kind for kind in turn.kinds() if kind != "idle"]
    assert kinds == ["processing", "waiting_for_tools", "tool_callback", "llm_response"]
    (callback,) = turn.all("tool_callback")
    assert set(callback) == {"type", "call_id", "tool_name", "arguments", "timestamp"}
    assert (callback["tool_name"], callback["arguments"]) == ("get_battery", {})
    assert turn.all("status")[1]["data"] == {"pending_tools": 1}
    assert "85" in told(llm, words)


@pytest.mark.requirement("GW-083")
@pytest.mark.parametrize("name", ["device.light.turn_on", "a" * 30 + "." + "b" * 33, "_._"])
async def test_a_callback_has_the_name_that_was_registered(client: GatewayClient, llm: ScriptedLlm, name: str) -> None:
    words = f"带点的名字{name}"
    llm.when(words, lambda body: asks((next(iter(_own(body))), {"on": True}))(body), spoken("好的"))
    await client.register(tool(name, on={"type": "boolean"}))
    turn = await client.turn(words, {name: lambda _: "done"})
    (callback,) = turn.all("tool_callback")
    assert (callback["tool_name"], callback["arguments"]) == (name, {"on": True})


@pytest.mark.requirement("GW-083")
async def test_names_that_a_model_cannot_tell_apart_reach_the_right_tool(
    client: GatewayClient, llm: ScriptedLlm
) -> None:
    words = "两个相似的名字"
    llm.when(words, lambda body: asks(*((name, {}) for name in _own(body)))(body), spoken("好的"))
    await client.register(tool("a.b"), tool("a_b"))
    turn = await client.turn(words, {"a.b": lambda _: 1, "a_b": lambda _: 2})
    assert sorted(callback["tool_name"] for callback in turn.all("tool_callback")) == ["a.b", "a_b"]


def _own(body: dict[str, Any]) -> list[str]:
    return [name for name, offer in offers(body).items() if offer["description"].endswith("的说明")]


@pytest.mark.requirement("GW-084")
@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"a": {"b": [1, "二"]}}, "二"),
        ([1, 2, 3], "3"),
        ("文字", "文字"),
        (21.5, "21.5"),
        (True, "true"),
        (None, ""),
        ("长" * 20_000, "长"),
    ],
)
async def test_a_result_may_be_of_any_type(client: GatewayClient, llm: ScriptedLlm, result: Any, words: str) -> None:
    question = f"任何类型{str(result)[:20]}"
    llm.when(question, asks(("get_battery", {})), spoken("知道了"))
    await client.register(BATTERY)
    assert (await client.turn(question, {"get_battery": lambda _: result})).content == "知道了"
    assert words in told(llm, question).lower()


@pytest.mark.requirement("GW-085")
@pytest.mark.parametrize(
    "members",
    [
        {"result": {"level": 42}},
        {"result": {"level": 42}, "success": None},
        {"result": {"level": 42}, "success": True, "error": None},
        {"result": {"level": 42}, "error": ""},
        {"success": True, "result": {"level": 42}, "session_id": "any", "timestamp": "any"},
    ],
)
async def test_success_may_be_left_out(client: GatewayClient, llm: ScriptedLlm, members: dict[str, Any]) -> None:
    words = f"没有成功字段{members}"
    llm.when(words, asks(("get_battery", {})), spoken("四十二"))
    await client.register(BATTERY)
    await client.send("text_input", text=words)
    (callback,) = await client.until_callbacks()
    await client.send("tool_result", call_id=callback["call_id"], **members)
    assert (await client.finish()).content == "四十二"
    assert "42" in told(llm, words)


@pytest.mark.requirement("GW-085")
async def test_a_result_may_be_left_out(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("没有结果字段", asks(("get_battery", {})), spoken("完成"))
    await client.register(BATTERY)
    await client.send("text_input", text="没有结果字段")
    (callback,) = await client.until_callbacks()
    await client.send("tool_result", call_id=callback["call_id"], success=True)
    assert (await client.finish()).content == "完成"


@pytest.mark.requirement("GW-086")
@pytest.mark.parametrize(
    "members",
    [
        {"result": None, "success": False, "error": "设备连接超时"},
        {"success": False, "error": "设备连接超时"},
        {"error": "设备连接超时"},
    ],
)
async def test_a_failure_ends_the_turn_with_its_code_and_reason(
    client: GatewayClient, llm: ScriptedLlm, members: dict[str, Any]
) -> None:
    words = f"执行失败{members}"
    llm.when(words, asks(("get_battery", {})), spoken("不应该说"))
    await client.register(BATTERY)
    await client.send("text_input", text=words)
    (callback,) = await client.until_callbacks()
    await client.send("tool_result", call_id=callback["call_id"], **members)
    turn = await client.finish()
    assert turn.code == "TOOL_EXECUTION_FAILED"
    assert "设备连接超时" in turn.last["details"]
    assert [message for message in await client.settled() if message["type"] != "status"] == []


@pytest.mark.requirement("GW-086")
async def test_a_failure_without_a_reason_is_a_failure(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("失败没有原因", asks(("get_battery", {})), spoken("不应该说"))
    await client.register(BATTERY)
    await client.send("text_input", text="失败没有原因")
    (callback,) = await client.until_callbacks()
    await client.send("tool_result", call_id=callback["call_id"], success=False)
    assert (await client.finish()).code == "TOOL_EXECUTION_FAILED"


@pytest.mark.requirement("GW-026", "GW-086")
async def test_two_failures_in_one_turn_are_one_error(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("两个都失败", asks(("get_battery", {}), ("set_volume", {"volume": 1})), spoken("不应该说"))
    await client.register(BATTERY, VOLUME)
    turn = await client.turn("两个都失败", {})
    assert turn.code == "TOOL_EXECUTION_FAILED"
    assert [message for message in await client.settled() if message["type"] != "status"] == []


@pytest.mark.requirement("GW-087")
async def test_several_calls_are_made_at_once_and_answered_in_any_order(
    client: GatewayClient, llm: ScriptedLlm
) -> None:
    words = "两个工具一起"
    llm.when(words, asks(("get_battery", {}), ("set_volume", {"volume": 50})), spoken("都好了"))
    await client.register(BATTERY, VOLUME)
    await client.send("text_input", text=words)
    callbacks = await client.until_callbacks(2)
    assert len({callback["call_id"] for callback in callbacks}) == 2
    for callback in reversed(callbacks):
        await client.send("tool_result", call_id=callback["call_id"], success=True, result=callback["tool_name"])
    assert (await client.finish()).content == "都好了"
    last = llm.asked(words)[-1]["messages"]
    calls = {call["id"]: call["function"]["name"] for message in last for call in message.get("tool_calls") or ()}
    results = {message["tool_call_id"]: message["content"] for message in last if message["role"] == "tool"}
    assert all(calls[id_] in text for id_, text in results.items())
    assert len(results) == 2


@pytest.mark.requirement("GW-082", "GW-087")
async def test_the_number_of_pending_tools_is_told_before_the_callbacks(
    client: GatewayClient, llm: ScriptedLlm
) -> None:
    words = "等待几个工具"
    llm.when(words, asks(("get_battery", {}), ("set_volume", {"volume": 1}), ("get_battery", {})), spoken("好"))
    await client.register(BATTERY, VOLUME)
    turn = await client.turn(words, {"get_battery": lambda _: 1, "set_volume": lambda _: 2})
    kinds = turn.kinds()
    waiting = kinds.index("waiting_for_tools")
    assert "tool_callback" not in kinds[:waiting]
    assert turn.messages[waiting]["data"]["pending_tools"] == 3
    assert len({callback["call_id"] for callback in turn.all("tool_callback")}) == 3


@pytest.mark.requirement("GW-081")
async def test_arguments_of_every_type_reach_the_client_as_they_are(client: GatewayClient, llm: ScriptedLlm) -> None:
    names = {"text": "string", "number": "number", "flag": "boolean", "list": "array", "object": "object"}
    arguments = {"text": "文字", "number": 21.5, "flag": True, "list": [1, "二"], "object": {"a": {"b": [1]}}}
    llm.when("各种类型的参数", asks(("kinds", arguments)), spoken("好"))
    await client.register(tool("kinds", **{name: {"type": kind} for name, kind in names.items()}))
    turn = await client.turn("各种类型的参数", {"kinds": lambda _: True})
    assert [callback["arguments"] for callback in turn.all("tool_callback")] == [arguments]


@pytest.mark.requirement("GW-088")
async def test_tools_may_be_called_round_after_round(client: GatewayClient, llm: ScriptedLlm) -> None:
    words = "一步一步来"
    llm.when(words, asks(("get_battery", {})), asks(("set_volume", {"volume": 9})), spoken("两步完成"))
    await client.register(BATTERY, VOLUME)
    turn = await client.turn(words, {"get_battery": lambda _: 9, "set_volume": lambda found: found["volume"]})
    assert turn.content == "两步完成"
    assert [callback["tool_name"] for callback in turn.all("tool_callback")] == ["get_battery", "set_volume"]


@pytest.mark.requirement("GW-089")
async def test_a_client_that_does_not_answer_in_time_gets_an_error(hasty: GatewayProcess, llm: ScriptedLlm) -> None:
    llm.when("打开车门", asks(("open_door", {})), spoken("不应该说"))
    async with gateway_client(hasty.url) as client:
        await client.register(tool("open_door"))
        await client.send("text_input", text="打开车门")
        (callback,) = await client.until_callbacks()
        turn = await client.finish()
        assert turn.code == "TOOL_RESULT_TIMEOUT"
        assert turn.last["message"] == "Tool execution timeout"
        await client.send("tool_result", call_id=callback["call_id"], success=True, result="too late")
        assert (await client.expect("error"))["code"] == "INVALID_MESSAGE"
        assert [message["type"] for message in await client.settled() if message["type"] != "status"] == []
        assert "超时以后" in (await client.turn("超时以后")).content


@pytest.mark.requirement("GW-090")
async def test_a_result_that_nobody_waits_for_is_an_invalid_message(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("只要一个结果", asks(("get_battery", {})), spoken("一个"))
    await client.send("tool_result", call_id="nobody-knows", success=True, result=1)
    assert (await client.expect("error"))["code"] == "INVALID_MESSAGE"
    await client.register(BATTERY)
    turn = await client.turn("只要一个结果", {"get_battery": lambda _: 1})
    (callback,) = turn.all("tool_callback")
    await client.send("tool_result", call_id=callback["call_id"], success=True, result=2)
    assert (await client.expect("error"))["code"] == "INVALID_MESSAGE"


@pytest.mark.requirement("GW-090")
async def test_a_wrong_call_id_in_the_middle_of_a_turn_leaves_the_turn_alone(
    client: GatewayClient, llm: ScriptedLlm
) -> None:
    llm.when("中途错误的编号", asks(("get_battery", {})), spoken("没有影响"))
    await client.register(BATTERY)
    await client.send("text_input", text="中途错误的编号")
    (callback,) = await client.until_callbacks()
    await client.send("tool_result", call_id="wrong", success=True, result=1)
    assert (await client.expect("error"))["code"] == "INVALID_MESSAGE"
    await client.send("tool_result", call_id=callback["call_id"], success=True, result=1)
    assert (await client.finish()).content == "没有影响"


@pytest.mark.requirement("GW-090")
async def test_a_result_from_another_connection_is_not_taken(gateway: GatewayProcess, llm: ScriptedLlm) -> None:
    llm.when("别人的编号", asks(("get_battery", {})), spoken("自己的"))
    async with gateway_client(gateway.url) as client, gateway_client(gateway.url) as stranger:
        await client.register(BATTERY)
        await client.send("text_input", text="别人的编号")
        (callback,) = await client.until_callbacks()
        await stranger.send("tool_result", call_id=callback["call_id"], success=True, result="forged")
        assert (await stranger.expect("error"))["code"] == "INVALID_MESSAGE"
        await client.send("tool_result", call_id=callback["call_id"], success=True, result="true")
        assert (await client.finish()).content == "自己的"
    assert "forged" not in told(llm, "别人的编号")


@pytest.mark.requirement("GW-091")
async def test_a_tool_that_does_not_exist_is_told_with_its_code(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("不存在的工具", asks(("no_such_tool", {}), ("get_battery", {})), spoken("不应该说"))
    await client.register(BATTERY)
    turn = await client.turn("不存在的工具", {"get_battery": lambda _: 1})
    assert turn.code == "TOOL_NOT_FOUND"
    assert turn.last["message"]
    assert [message for message in await client.settled() if message["type"] != "status"] == []


@pytest.mark.requirement("GW-092")
@pytest.mark.parametrize("arguments", ['{"volume": ', '{"volume": "loud"}', '{"volume": 1000}', "{}", "[]"])
async def test_arguments_that_do_not_fit_never_reach_the_client(
    client: GatewayClient, llm: ScriptedLlm, arguments: str
) -> None:
    words = f"错误的参数{arguments}"
    llm.when(words, asks(("set_volume", arguments)), asks(("set_volume", {"volume": 30})), spoken("好了"))
    await client.register(VOLUME)
    turn = await client.turn(words, {"set_volume": lambda found: found})
    assert [callback["arguments"] for callback in turn.all("tool_callback")] == [{"volume": 30}]
    assert turn.content == "好了"


@pytest.mark.requirement("GW-092")
async def test_arguments_that_never_fit_are_an_error(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("总是错误的参数", asks(("set_volume", '{"volume": ')))
    await client.register(VOLUME)
    turn = await client.turn("总是错误的参数", {"set_volume": lambda found: found})
    assert turn.all("tool_callback") == []
    assert turn.code == "INVALID_TOOL_PARAMETERS"


@pytest.mark.requirement("GW-093")
async def test_a_client_that_leaves_in_the_middle_ends_the_models_stream(
    gateway: GatewayProcess, llm: ScriptedLlm
) -> None:
    llm.when("中途断开", spoken("第一句。", then="silent"))
    async with gateway_client(gateway.url) as client:
        await client.send("text_input", text="中途断开")
        await asyncio.to_thread(until, lambda: len(llm.heard("中途断开")) == 1)
    (request,) = llm.heard("中途断开")
    assert await asyncio.to_thread(request.hung_up.wait, 240)


@pytest.mark.requirement("GW-093")
async def test_a_client_that_leaves_while_its_tool_runs_harms_nobody(gateway: GatewayProcess, llm: ScriptedLlm) -> None:
    llm.when("工具运行时断开", asks(("get_battery", {})), spoken("没有人听"))
    async with gateway_client(gateway.url) as other:
        async with gateway_client(gateway.url) as client:
            await client.register(BATTERY)
            await client.send("text_input", text="工具运行时断开")
            await client.until_callbacks()
            session = client.session
            client.socket.transport.abort()
        assert "旁观者" in (await other.turn("旁观者")).content
        await other.send("start_session", session_id=session)
        assert (await other.reply())["type"] in ("status", "error")
        assert "旁观者又来" in (await other.turn("旁观者又来")).content


@pytest.mark.requirement("GW-094")
async def test_many_results_at_once_are_all_taken(client: GatewayClient, llm: ScriptedLlm) -> None:
    """More than the queue of results holds by default."""
    count = 16
    llm.when("很多结果", asks(*(("get_battery", {}) for _ in range(count))), spoken("全部收到"))
    await client.register(BATTERY)
    numbers = iter(range(count))
    turn = await client.turn("很多结果", {"get_battery": lambda _: f"结果{next(numbers)}。"})
    assert turn.content == "全部收到"
    assert all(f"结果{number}。" in told(llm, "很多结果") for number in range(count))


@pytest.mark.requirement("GW-094")
async def test_as_many_results_as_the_queue_holds_may_come_together(client: GatewayClient, llm: ScriptedLlm) -> None:
    count = 10
    llm.when("十个结果一起", asks(*(("get_battery", {}) for _ in range(count))), spoken("十个都到"))
    await client.register(BATTERY)
    await client.send("text_input", text="十个结果一起")
    callbacks = await client.until_callbacks(count)
    for number, callback in enumerate(callbacks):
        await client.send("tool_result", call_id=callback["call_id"], success=True, result=f"编号{number}。")
    assert (await client.finish()).content == "十个都到"
    assert all(f"编号{number}。" in told(llm, "十个结果一起") for number in range(count))


@pytest.mark.requirement("GW-024")
async def test_the_answer_lists_the_calls_that_were_made_for_it(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("列出调用", asks(("set_volume", {"volume": 5}), ("get_current_time", {})), spoken("好"))
    await client.register(VOLUME)
    turn = await client.turn("列出调用", {"set_volume": lambda found: found})
    calls = {call["tool_name"]: call for call in turn.last["tool_calls"]}
    assert set(calls) == {"set_volume", "get_current_time"}
    assert calls["set_volume"]["arguments"] == {"volume": 5}


@pytest.mark.requirement("GW-124")
async def test_of_too_many_texts_at_once_the_last_is_refused(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("排队", Answer(then="silent", header=False))
    for number in range(12):
        await client.send("text_input", text=f"排队{number}")
    refused = await client.settled()
    assert {message["type"] for message in refused} == {"status", "error"}
    assert {message["code"] for message in refused if message["type"] == "error"} == {"INTERNAL_ERROR"}
    await client.send("end_session")
    ended = await client.settled()
    answered = [message for message in (*refused, *ended) if message["type"] == "error"]
    assert len(answered) == 12, "each text has one answer"


@pytest.mark.requirement("GW-026")
async def test_a_second_text_while_the_first_waits_is_answered_too(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("第一个问题要等", Answer(spoken("第一。").body, kind="text/event-stream", pace=0.1))
    await client.send("text_input", text="第一个问题要等")
    await client.send("text_input", text="第二个问题")
    turns = [await client.finish(), await client.finish()]
    assert [turn.last["type"] for turn in turns].count("llm_response") >= 1
    assert [message["type"] for message in await client.settled() if message["type"] != "status"] == []

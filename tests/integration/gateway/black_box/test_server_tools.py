"""The server's own tools by their names (sections 5.3, 7.2, 7.4, 7.6, 7.7, 9.2, 9.5)."""

from typing import Any

import pytest

from tests.support.gateway_client import VOLUME, GatewayClient, Turn, gateway_client
from tests.support.gateway_messages import Message
from tests.support.gateway_process import GatewayProcess
from tests.support.openai_server import spoken
from tests.support.scripted_llm import ScriptedLlm, asks, offers, roles

TOOLS = {
    "get_weather": {"city", "date"},
    "get_current_time": {"timezone"},
    "get_location": set(),
    "set_response_language": {"language"},
    "get_response_language": set(),
    "list_supported_languages": set(),
    "enter_roleplay_mode": {"character", "session_id"},
    "exit_roleplay_mode": {"session_id"},
    "get_roleplay_status": {"session_id"},
    "list_available_characters": set(),
}
LANGUAGES = ["zh", "en", "ja", "ko", "de", "fr", "ru", "pt", "es", "it"]


async def use(client: GatewayClient, llm: ScriptedLlm, name: str, **arguments: Any) -> Message:
    """Let the model call a tool; return the notice of it."""
    words = f"请用{name}：{arguments}"
    llm.when(words, asks((name, arguments)), spoken("用过了。"))
    turn = await client.turn(words)
    assert turn.content == "用过了。"
    (call,) = turn.all("tool_call")
    assert (call["tool_name"], call["arguments"]) == (name, arguments)
    assert call["duration_ms"] >= 0
    return call


async def prompt(client: GatewayClient, llm: ScriptedLlm, words: str) -> str:
    """Return the system prompt of a turn."""
    await client.turn(words)
    return roles(llm.asked(words)[-1], "system")[0]


@pytest.mark.requirement("GW-100", "GW-101")
async def test_the_ten_tools_are_offered_with_their_parameters(client: GatewayClient, llm: ScriptedLlm) -> None:
    await client.turn("有哪些服务端工具")
    found = offers(llm.asked("有哪些服务端工具")[-1])
    told = {name: set(found[name]["parameters"].get("properties", {})) for name in TOOLS}
    assert told == TOOLS
    assert all(found[name]["description"] for name in TOOLS)


@pytest.mark.requirement("GW-102", "GW-104")
async def test_the_time_is_told_and_the_call_before_the_answer(client: GatewayClient, llm: ScriptedLlm) -> None:
    llm.when("现在几点", asks(("get_current_time", {})), spoken("现在是下午。"))
    turn = await client.turn("现在几点")
    assert [kind for kind in turn.kinds() if kind != "idle"] == ["processing", "tool_call", "llm_response"]
    (call,) = turn.all("tool_call")
    assert set(call) == {"type", "tool_name", "arguments", "result", "success", "duration_ms", "timestamp"}
    assert call["success"] is True
    assert turn.content == "现在是下午。"


@pytest.mark.requirement("GW-104")
async def test_the_time_is_that_of_a_time_zone(client: GatewayClient, llm: ScriptedLlm) -> None:
    there = await use(client, llm, "get_current_time", timezone="Asia/Tokyo")
    assert there["success"]
    assert "Asia/Tokyo" in str(there["result"]) or "+09:00" in str(there["result"])
    nowhere = await use(client, llm, "get_current_time", timezone="Mars/Olympus")
    assert nowhere["success"] is False


@pytest.mark.requirement("GW-103")
async def test_without_its_service_the_weather_fails_in_words(twin: GatewayProcess, llm: ScriptedLlm) -> None:
    async with gateway_client(twin.url) as client:
        call = await use(client, llm, "get_weather", city="北京", date="明天")
    assert call["success"] is False
    assert isinstance(call["result"]["error"], str)
    assert call["result"]["error"] in roles(llm.asked("请用get_weather")[-1], "tool")[-1]


@pytest.mark.requirement("GW-113")
async def test_a_server_tool_that_takes_too_long_ends_the_turn(hasty: GatewayProcess, llm: ScriptedLlm) -> None:
    llm.when("很慢的天气", asks(("get_weather", {"city": "北京"})), spoken("不应该说"))
    async with gateway_client(hasty.url) as client:
        turn = await client.turn("很慢的天气")
    assert turn.code == "TOOL_EXECUTION_FAILED"
    assert [call["success"] for call in turn.all("tool_call")] == [False]


@pytest.mark.requirement("GW-105")
async def test_the_place_is_told_or_known_to_be_unknown(client: GatewayClient, llm: ScriptedLlm) -> None:
    assert (await use(client, llm, "get_location"))["result"]


@pytest.mark.requirement("GW-106", "GW-107", "GW-112")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_language_changes_what_the_model_is_told(
    client: GatewayClient, llm: ScriptedLlm, language: str
) -> None:
    before = await prompt(client, llm, f"换语言之前{language}")
    assert (await use(client, llm, "set_response_language", language=language))["success"]
    after = await prompt(client, llm, f"换语言之后{language}")
    assert len(after) > len(before)
    assert language in str((await use(client, llm, "get_response_language"))["result"])


@pytest.mark.requirement("GW-112")
async def test_a_language_that_is_not_supported_changes_nothing(client: GatewayClient, llm: ScriptedLlm) -> None:
    words = "不支持的语言"
    llm.when(words, asks(("set_response_language", {"language": "tlh"})), spoken("不支持。"))
    turn = await client.turn(words)
    assert turn.content == "不支持。"
    assert [call["success"] for call in turn.all("tool_call")] in ([], [False])
    assert "tlh" not in str((await use(client, llm, "get_response_language"))["result"])


@pytest.mark.requirement("GW-108")
async def test_ten_languages_are_listed(client: GatewayClient, llm: ScriptedLlm) -> None:
    listed = str((await use(client, llm, "list_supported_languages"))["result"])
    assert [code for code in LANGUAGES if f"'{code}'" not in listed] == []


@pytest.mark.requirement("GW-106")
async def test_a_language_holds_for_its_session_only(gateway: GatewayProcess, llm: ScriptedLlm) -> None:
    async with gateway_client(gateway.url) as one, gateway_client(gateway.url) as other:
        await use(one, llm, "set_response_language", language="fr")
        mine, theirs = await prompt(one, llm, "我的语言"), await prompt(other, llm, "别人的语言")
    assert len(mine) > len(theirs)


@pytest.mark.requirement("GW-109", "GW-110", "GW-111", "GW-114")
async def test_a_character_is_listed_entered_reported_and_left(client: GatewayClient, llm: ScriptedLlm) -> None:
    plain = await prompt(client, llm, "角色扮演之前")
    characters = (await use(client, llm, "list_available_characters"))["result"]
    name = _first_name(characters)
    assert name not in str((await use(client, llm, "get_roleplay_status"))["result"])
    assert (await use(client, llm, "enter_roleplay_mode", character=name))["success"]
    assert name in str((await use(client, llm, "get_roleplay_status", session_id=client.session))["result"])
    assert len(await prompt(client, llm, "角色扮演之中")) > len(plain)
    assert (await use(client, llm, "exit_roleplay_mode"))["success"]
    assert len(await prompt(client, llm, "角色扮演之后")) == len(plain)


def _first_name(listed: Any) -> str:
    """Return the first character of whatever list a result holds."""
    found = next(value for value in listed.values() if isinstance(value, list)) if isinstance(listed, dict) else listed
    first = found[0]
    return str(first.get("name") or first.get("id")) if isinstance(first, dict) else str(first)


@pytest.mark.requirement("GW-109")
async def test_an_unknown_character_is_refused(client: GatewayClient, llm: ScriptedLlm) -> None:
    assert (await use(client, llm, "enter_roleplay_mode", character="没有这个人"))["success"] is False


@pytest.mark.requirement("GW-115")
async def test_tools_of_both_sides_work_in_one_turn(client: GatewayClient, llm: ScriptedLlm) -> None:
    words = "几点了，顺便把音量设为50"
    llm.when(words, asks(("get_current_time", {}), ("set_volume", {"volume": 50})), spoken("都做好了"))
    await client.register(VOLUME)
    turn = await client.turn(words, {"set_volume": lambda found: found})
    assert turn.content == "都做好了"
    assert [call["tool_name"] for call in turn.all("tool_call")] == ["get_current_time"]
    assert [call["arguments"] for call in turn.all("tool_callback")] == [{"volume": 50}]
    assert [status["data"]["pending_tools"] for status in _waiting(turn)] == [1]
    assert len(roles(llm.asked(words)[-1], "tool")) == 2
    kinds = turn.kinds()
    assert kinds.index("tool_call") < kinds.index("tool_callback")


def _waiting(turn: Turn) -> list[Message]:
    return [status for status in turn.all("status") if status["status"] == "waiting_for_tools"]


@pytest.mark.requirement("GW-116")
async def test_several_server_tools_are_told_each(client: GatewayClient, llm: ScriptedLlm) -> None:
    words = "几点了，有哪些语言"
    llm.when(words, asks(("get_current_time", {}), ("list_supported_languages", {})), spoken("说完了"))
    turn = await client.turn(words)
    assert sorted(call["tool_name"] for call in turn.all("tool_call")) == [
        "get_current_time",
        "list_supported_languages",
    ]


@pytest.mark.requirement("GW-117")
async def test_a_clients_tool_of_the_same_name_takes_the_place_of_the_servers(
    client: GatewayClient, llm: ScriptedLlm
) -> None:
    own = {"name": "get_current_time", "description": "客户端的时钟", "parameters": {"type": "object"}}
    llm.when("同名的工具", asks(("get_current_time", {})), spoken("客户端的时间"))
    assert (await client.register(own))["count"] == 1
    turn = await client.turn("同名的工具", {"get_current_time": lambda _: "客户端"})
    assert turn.content == "客户端的时间"
    assert len(turn.all("tool_callback")) == 1
    assert turn.all("tool_call") == []
    descriptions = [offer["description"] for offer in offers(llm.asked("同名的工具")[0]).values()]
    assert descriptions.count("客户端的时钟") == 1

"""What the real library sends is tested with a server in test_llm_openai; here what is decided before."""

from typing import Any

import pytest

from fleet.adapters.llm.chat_request import RequestWriter
from fleet.core.ports import USUAL, LlmOptions, Message, ToolCall, ToolOffer

OFFER = ToolOffer("volume", "Sets it.", {"type": "object", "properties": {"level": {"type": "integer"}}})
CALL = ToolCall("c1", "volume", "{}")
TALK = (Message("user", "hi"), Message("assistant", "", (CALL,)), Message("tool", "ok", call_id="c1"))


def writer(usual: LlmOptions = USUAL, *, openai: bool = False, google: bool = False) -> RequestWriter:
    return RequestWriter(is_openai=openai, is_google=google, usual=usual)


def test_openai_itself_is_told_the_longest_answer_by_its_new_name() -> None:
    body = writer(openai=True).write(TALK, [OFFER], LlmOptions(max_tokens=5))
    assert body["max_completion_tokens"] == 5
    assert "max_tokens" not in body


def test_a_conversation_with_calls_is_never_sent_without_tools() -> None:
    body = writer().write(TALK, [], USUAL)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["volume"]
    assert body["tool_choice"] == "none"
    assert "tools" not in writer().write(TALK[:1], [], LlmOptions(may_call=False))


def test_google_is_sent_a_tool_without_arguments_without_a_schema() -> None:
    offers = [ToolOffer("ping", "Pings."), OFFER]
    plain, google = (writer(google=is_google).write(TALK, offers, USUAL)["tools"] for is_google in (False, True))
    assert plain[0]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert google[0]["function"] == {"name": "ping", "description": "Pings."}
    assert google[1] == plain[1]


@pytest.mark.parametrize("field", ["temperature", "tool_choice"])
def test_a_refused_field_is_left_out_from_then_on(field: str) -> None:
    one, options = writer(), LlmOptions(0.5, may_call=False)
    body = one.write(TALK, [OFFER], options)
    assert one.adapt(body, ["something", field])
    assert set(body) - set(one.write(TALK, [OFFER], options)) == {field}
    assert not one.adapt(one.write(TALK, [OFFER], options), [field]), "the same complaint again is no reason to retry"


def test_the_longest_answer_is_first_given_by_its_new_name() -> None:
    one, options = writer(LlmOptions(max_tokens=9)), USUAL
    assert one.adapt(one.write(TALK, [], options), ["max_tokens"])
    assert one.write(TALK, [], options)["max_completion_tokens"] == 9
    assert not one.adapt(one.write(TALK, [], options), ["max_tokens"])


def test_a_field_that_was_not_sent_is_no_reason_to_ask_again() -> None:
    one = writer()
    assert not one.adapt(one.write(TALK, [], USUAL), ["temperature", "reasoning_content", "messages"])


def assistant(body: dict[str, Any]) -> dict[str, Any]:
    found = body["messages"][1]
    assert isinstance(found, dict)
    return found


def test_thoughts_and_signatures_go_back_with_their_calls() -> None:
    one = writer()
    one.echoes.keep([CALL], "hm", {"c1": {"google": {"thought_signature": "s"}}})
    message = assistant(one.write(TALK, [OFFER], USUAL))
    assert message["reasoning_content"] == "hm"
    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


def test_calls_of_another_worker_go_back_with_empty_thoughts_where_the_endpoint_thinks() -> None:
    one = writer()
    assert "reasoning_content" not in assistant(one.write(TALK, [OFFER], USUAL))
    one.echoes.keep([ToolCall("other", "t", "{}")], "hm", {})
    body = one.write(TALK, [OFFER], USUAL)
    assert assistant(body)["reasoning_content"] == ""
    assert one.adapt(body, ["reasoning_content"])
    assert "reasoning_content" not in assistant(one.write(TALK, [OFFER], USUAL))

import json
from typing import Any

import pytest

from fleet.workbench.demo_llm.requests import LONGEST_UTTERANCE, MOST_ROUNDS, BadRequest, parse_request
from tests.support.demo_tools import STOCK

USER = {"role": "user", "content": "volume 30"}


def asked(*messages: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": messages or [USER], **fields}).encode()


def call(id: str = "c1", arguments: str = '{"volume": 30}') -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "set_volume", "arguments": arguments}}


def calling(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def answering(id: str = "c1", content: str = "true") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def test_the_conversation_is_cut_at_the_last_user_message() -> None:
    said = parse_request(
        asked(
            {"role": "system", "content": "be nice"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "Hello."},
            USER,
            calling(call()),
            answering(),
        )
    ).conversation()
    assert (said.utterance, said.earlier, said.last_answer, said.may_call) == ("volume 30", ("hello",), "Hello.", True)
    assert [(call.name, dict(call.arguments), result.text) for call, result in said.done] == [
        ("set_volume", {"volume": 30}, "true")
    ]


def test_content_may_come_in_parts() -> None:
    parts = [
        {"type": "text", "text": "volume"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "30"},
    ]
    assert parse_request(asked({"role": "user", "content": parts})).conversation().utterance == "volume\n30"


def test_a_long_message_is_read_in_part() -> None:
    long = {"role": "user", "content": "音量" * LONGEST_UTTERANCE}
    assert len(parse_request(asked(long)).conversation().utterance) == LONGEST_UTTERANCE


def test_a_request_without_a_user_has_an_empty_utterance() -> None:
    assert parse_request(asked({"role": "system", "content": "x"})).conversation().utterance == ""


@pytest.mark.parametrize("arguments", ["", "no json", "[1]", '{"volume": [1]}'])
def test_damaged_arguments_count_as_none(arguments: str) -> None:
    ((done, _),) = parse_request(asked(USER, calling(call(arguments=arguments)), answering())).conversation().done
    assert dict(done.arguments) == {}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", ""),
        (b'{"model": "m"}', "messages"),
        (b'{"model": "m", "messages": []}', "messages"),
        (b'{"messages": [{"role": "user", "content": "x"}]}', "model"),
        (asked({"role": "robot", "content": "x"}), "messages.0.role"),
        (asked({"role": "user", "content": 5}), "messages.0.content"),
        (asked(n=2), "n"),
        (asked(tools=[{"type": "function", "function": {"name": "a b"}}]), "tools.0.function.name"),
        (asked(tool_choice="required"), "tool_choice"),
        (asked(USER, answering()), "messages.1.tool_call_id"),
        (asked(USER, calling(call())), "messages.2"),
        (asked(USER, calling(call("a"), call("b")), answering("a"), USER), "messages.3"),
        (asked(USER, calling(call("a")), answering("b")), "messages.2.tool_call_id"),
    ],
)
def test_what_openai_refuses_is_refused(body: bytes, param: str | None) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_request(body)
    assert refused.value.param == param


def test_fields_for_language_models_are_ignored() -> None:
    made = parse_request(asked(temperature=0.3, max_tokens=5, seed=1, user="x", future_field={"a": 1}))
    assert made.model == "m"
    assert made.offered() == ()


def test_tools_may_be_forbidden_and_rounds_have_an_end() -> None:
    rounds = [message for at in range(MOST_ROUNDS) for message in (calling(call(f"c{at}")), answering(f"c{at}"))]
    assert parse_request(asked(tools=STOCK)).conversation().may_call
    assert not parse_request(asked(tools=STOCK, tool_choice="none")).conversation().may_call
    assert not parse_request(asked(USER, *rounds)).conversation().may_call

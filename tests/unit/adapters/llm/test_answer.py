import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.llm import answer as module
from fleet.adapters.llm.answer import DONE, StreamedAnswer
from fleet.core.ports import CallsAsked, TextDelta, ThoughtDelta, TokensUsed, TokenUsage, ToolCall
from fleet.wire.json_text import MOST_VALUES
from tests.support.openai_server import delta


def chunk(finish: str | None = None, /, **fields: object) -> bytes:
    return json.dumps(delta(finish, **fields)).encode()


def test_text_and_calls_of_one_message_both_come_out() -> None:
    answer = StreamedAnswer()
    assert answer.feed(chunk(role="assistant", content="")) == []
    assert answer.feed(chunk(content="One moment")) == [TextDelta("One moment")]
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    assert answer.feed(chunk(tool_calls=[call])) == []
    assert not answer.finished
    assert answer.feed(chunk("tool_calls")) == []
    assert answer.finished
    assert answer.end() == [CallsAsked((ToolCall("a", "x", "{}"),))]


def test_parts_of_text_are_said_and_parts_of_thought_are_not() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Yes"}]
    assert StreamedAnswer().feed(chunk(content=parts)) == [TextDelta("Yes")]


def test_a_refusal_is_said() -> None:
    assert StreamedAnswer().feed(chunk(refusal="I cannot")) == [TextDelta("I cannot")]


def test_reasoning_fields_count_as_life_and_are_thoughts() -> None:
    answer = StreamedAnswer()
    assert answer.feed(chunk(reasoning_content="hm", reasoning="hm")) == [ThoughtDelta("hm")]
    assert answer.feed(chunk(reasoning="so", content="Yes")) == [ThoughtDelta("so"), TextDelta("Yes")]
    assert (answer.chunks, answer.thought) == (2, "hm")


def test_reasoning_that_is_no_text_is_nothing() -> None:
    assert StreamedAnswer().feed(chunk(reasoning={"effort": "high"}, reasoning_content=["a"], content="Yes")) == [
        TextDelta("Yes")
    ]


@pytest.mark.parametrize(
    "named",
    [
        {"prompt_tokens_details": {"cached_tokens": 80}},
        {"prompt_cache_hit_tokens": 80, "prompt_cache_miss_tokens": 20, "prompt_tokens_details": None},
        {"cached_tokens": 80},
    ],
)
def test_tokens_are_told_before_the_calls(named: dict[str, object]) -> None:
    answer = StreamedAnswer()
    call = {"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}
    answer.feed(chunk("tool_calls", tool_calls=[call]))
    for written in (1, 7):
        usage = {"prompt_tokens": 100, "completion_tokens": written, **named}
        assert answer.feed(json.dumps({"choices": [], "usage": usage}).encode()) == []
    assert answer.end() == [TokensUsed(TokenUsage(100, 80, 7)), CallsAsked((ToolCall("a", "x", "{}"),))]
    assert answer.usage == {"input_tokens": 100, "cached_tokens": 80, "output_tokens": 7}


@pytest.mark.parametrize("odd", [{"prompt_tokens": -1}, {"prompt_tokens": "many"}, [], 7, {"prompt_tokens_details": 1}])
def test_odd_token_counts_are_no_fault(odd: object) -> None:
    answer = StreamedAnswer()
    answer.feed(json.dumps({"choices": [], "usage": odd}).encode())
    assert (answer.end(), answer.fault) == ([], "")


def test_no_more_tokens_are_cached_than_were_given() -> None:
    answer = StreamedAnswer()
    answer.feed(b'{"choices":[],"usage":{"prompt_tokens":5,"cached_tokens":9}}')
    assert answer.end() == [TokensUsed(TokenUsage(5, 5, 0))]


def test_what_came_with_a_call_is_told_by_its_final_id() -> None:
    answer = StreamedAnswer({"a"})
    call = {"index": 0, "id": "a", "function": {"name": "x"}, "extra_content": {"google": {"thought_signature": "s"}}}
    answer.feed(chunk(tool_calls=[call]))
    [asked] = answer.end()
    assert isinstance(asked, CallsAsked)
    assert answer.extras == {asked.calls[0].id: {"google": {"thought_signature": "s"}}}
    assert asked.calls[0].id != "a"


def test_chunks_without_a_choice_are_no_life() -> None:
    answer = StreamedAnswer()
    assert answer.feed(b'{"choices":[],"usage":{"total_tokens":4}}') == []
    assert answer.feed(b'{"choices":null}') == []
    assert (answer.chunks, answer.fault, answer.finished) == (0, "", False)


def test_done_finishes() -> None:
    answer = StreamedAnswer()
    assert answer.feed(DONE) == []
    assert answer.finished
    assert answer.end() == []


def test_held_text_comes_at_the_end() -> None:
    answer = StreamedAnswer()
    assert answer.feed(chunk(content="<thi")) == []
    assert answer.end() == [TextDelta("<thi")]


def test_only_the_first_choice_counts() -> None:
    two = {"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]}
    assert StreamedAnswer().feed(json.dumps(two).encode()) == [TextDelta("a")]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(["choices", "delta", "content", "tool_calls", "index", "id", "function", "name"]), values)
def test_a_damaged_chunk_is_a_fault_or_nothing_but_never_raises(damaged: str, value: object) -> None:
    call: dict[str, object] = {"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}
    fields: dict[str, object] = {"content": "hi", "tool_calls": [call]}
    whole: dict[str, object] = {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}
    for level in (whole, whole["choices"][0], fields, call, call["function"]):  # type: ignore[index]
        if damaged in level:  # type: ignore[operator]
            level[damaged] = value  # type: ignore[index]
    answer = StreamedAnswer()
    answer.feed(json.dumps(whole).encode())
    answer.end()


@given(st.binary(max_size=50))
def test_garbage_is_a_fault(payload: bytes) -> None:
    answer = StreamedAnswer()
    answer.feed(b"\xff" + payload)
    assert answer.fault


def test_a_message_may_ask_for_so_many_calls_only() -> None:
    def ask(first: int, count: int) -> bytes:
        calls = [{"index": at, "id": f"c{at}", "function": {"name": "t"}} for at in range(first, first + count)]
        return chunk(tool_calls=calls)

    answer = StreamedAnswer()
    answer.feed(ask(0, 64))
    assert not answer.fault
    answer.feed(ask(64, 1_000))
    assert answer.fault == "asked for more than 64 calls at once"


def test_a_chunk_longer_than_any_answer_is_a_fault() -> None:
    answer = StreamedAnswer()
    assert answer.feed(chunk(content="<think></think>" * 20_000)) == []
    assert answer.fault == "wrote without an end"


@pytest.mark.parametrize(
    "payload",
    [
        b'{"choices":[' + b"{}," * MOST_VALUES + b"{}]}",
        chunk(content=[{}] * MOST_VALUES),
        chunk(tool_calls=[{"index": 0, "function": {"name": "t", "arguments": "[],"}}] * MOST_VALUES),
    ],
)
def test_a_chunk_of_very_many_values_is_not_read(payload: bytes) -> None:
    answer = StreamedAnswer()
    assert answer.feed(payload) == [] and answer.chunks == 0
    assert answer.fault == "sent a chunk that cannot be read"


@pytest.mark.parametrize("field", ["x", "reasoning"])
def test_what_surrounds_the_text_counts_where_it_is_much(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 100)
    answer, payload = StreamedAnswer(), chunk(content="a", **{field: ["x" * 2_000]})
    while not answer.fault:
        answer.feed(payload)
    assert answer.fault == "wrote without an end" and 2 < answer.chunks < 20


@pytest.mark.parametrize("payload", [b"{}", chunk(content="")])
def test_empty_chunks_do_not_come_without_an_end(payload: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 100)
    answer = StreamedAnswer()
    for _ in range(100):
        answer.feed(payload)
    assert not answer.fault
    answer.feed(payload)
    assert answer.fault == "wrote without an end"


TEXTS = st.sampled_from(["", "hi", " <thi", "nk>no</think>", "\ud800", "x" * 300]) | st.none()
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": TEXTS | st.just([{"type": "text", "text": "part"}]) | st.just(7),
        "role": st.just("assistant"),
        "refusal": TEXTS,
        "reasoning_content": TEXTS,
        "reasoning": TEXTS,
        "tool_calls": st.none() | st.just([{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}]),
    },
)
CHOICES = st.fixed_dictionaries(
    {"delta": DELTAS | st.none()},
    optional={
        "finish_reason": st.none() | st.just("stop"),
        "message": st.none() | DELTAS,
        "error": st.none() | st.just("bad"),
        "logprobs": st.none(),
    },
)
CHUNKS = st.fixed_dictionaries(
    {"choices": st.none() | st.lists(CHOICES, max_size=2)},
    optional={
        "error": st.none() | st.just({"code": 1}),
        "usage": st.none() | st.just({"prompt_tokens": 3}),
        "id": st.text(),
    },
)


@given(st.lists(CHUNKS | st.text(), max_size=5), st.integers(5, 700))
def test_a_chunk_of_plain_text_is_read_as_any_other(chunks: list[object], largest: int) -> None:
    def read(payloads: list[bytes]) -> list[object]:
        answer = StreamedAnswer()
        seen: list[object] = []
        for payload in payloads:
            if not answer.fault:
                seen += answer.feed(payload), answer.fault, answer.finished, answer.chunks, answer.usage, answer.thought
        return [*seen, answer.end()]

    class Unread:
        def decode(self, payload: bytes) -> None:
            raise ValueError

    payloads = [json.dumps(one).encode() for one in chunks]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LARGEST", largest)
        plain = read(payloads)
        patch.setattr(module, "_PLAIN", Unread())
        assert plain == read(payloads)

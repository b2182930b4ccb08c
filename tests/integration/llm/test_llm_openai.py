import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from fleet.adapters.llm.answer import StreamedAnswer
from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.adapters.llm.sse import BodyReader
from fleet.core.ports import CallsAsked, LlmEvent, LlmOptions, Message, TextDelta, ThoughtDelta, ToolCall, ToolOffer
from fleet.ground.errors import ConfigError, ProviderError
from tests.support.leaping import leaping
from tests.support.openai_server import (
    DONE,
    JSON,
    SSE,
    Answer,
    OpenAiServer,
    asked,
    delta,
    refused,
    run_openai_server,
    spoken,
    sse,
)

KEY = "sk-very-secret"
LIMIT = 240.0
HELLO = [Message("user", "hello there")]
OFFER = ToolOffer("volume", "Sets the volume.", {"type": "object", "properties": {"level": {"type": "integer"}}})


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAiServer]:
    with run_openai_server() as running:
        yield running


@pytest.fixture
def server(running_server: OpenAiServer) -> OpenAiServer:
    running_server.reset()
    return running_server


@pytest.fixture
async def llm(server: OpenAiServer) -> AsyncIterator[OpenAiLlm]:
    model = OpenAiLlm(server.url, KEY, "m", LIMIT)
    yield model
    await model.aclose()


async def listen(llm: OpenAiLlm, messages: list[Message] | None = None) -> list[LlmEvent]:
    async with asyncio.timeout(240):
        return [event async for event in llm.stream(messages or HELLO, [OFFER])]


def text_of(events: list[LlmEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_of(events: list[LlmEvent]) -> tuple[ToolCall, ...]:
    assert isinstance(events[-1], CallsAsked)
    assert sum(isinstance(event, CallsAsked) for event in events) == 1
    return events[-1].calls


def piece(index: int | None = 0, /, id: str | None = None, name: str | None = None, args: object = None) -> dict:  # type: ignore[type-arg]
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    fields = {"index": index, "id": id, "function": function}
    return {key: value for key, value in fields.items() if value is not None}


async def test_text_comes_in_the_pieces_that_the_model_wrote(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(spoken("Good", " morning", "。\u2028\x85"))
    assert await listen(llm) == [TextDelta("Good"), TextDelta(" morning"), TextDelta("。\u2028\x85")]


async def test_the_request_says_what_was_configured_and_no_more(server: OpenAiServer) -> None:
    server.chat(spoken("ok"))
    llm = OpenAiLlm(server.url + "/", KEY, "some-model", LIMIT, temperature=0.3, max_tokens=99)
    await listen(llm, [Message("system", "be kind"), *HELLO])
    await llm.aclose()
    request = server.requests[0]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {
        "model": "some-model",
        "temperature": 0.3,
        "max_tokens": 99,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello there"}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "volume", "description": "Sets the volume.", "parameters": OFFER.parameters},
            }
        ],
    }


async def test_without_tools_or_choices_the_request_has_no_such_fields(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(spoken("ok"))
    assert [event async for event in llm.stream(HELLO, [])] == [TextDelta("ok")]
    assert set(server.requests[0].json) == {"model", "stream", "stream_options", "messages"}


async def test_an_endpoint_without_a_key_gets_a_dummy(server: OpenAiServer) -> None:
    server.chat(spoken("ok"))
    llm = OpenAiLlm(server.url, None, "m", LIMIT)
    await listen(llm)
    await llm.aclose()
    assert server.requests[0].headers["authorization"] == "Bearer none"


async def test_settings_of_another_account_are_not_sent(server: OpenAiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-other")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-other")
    server.chat(spoken("ok"))
    llm = OpenAiLlm(server.url, KEY, "m", LIMIT)
    await listen(llm)
    await llm.aclose()
    assert not {"openai-organization", "openai-project"} & set(server.requests[0].headers)


async def test_calls_and_their_results_are_written_as_the_endpoint_wants_them(
    server: OpenAiServer, llm: OpenAiLlm
) -> None:
    server.chat(spoken("ok"))
    calls = (ToolCall("c1", "volume", '{"level":3}'), ToolCall("c2", "light", "{broken"))
    await listen(llm, [*HELLO, Message("assistant", "", calls), Message("tool", "done", call_id="c1")])
    assert server.requests[0].json["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "volume", "arguments": '{"level":3}'}},
                {"id": "c2", "type": "function", "function": {"name": "light", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "content": "done", "tool_call_id": "c1"},
    ]


async def test_an_offer_without_parameters_has_an_empty_schema(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(spoken("ok"))
    assert [event async for event in llm.stream(HELLO, [ToolOffer("ping", "")])]
    parameters = server.requests[0].json["tools"][0]["function"]["parameters"]
    assert parameters == {"type": "object", "properties": {}}


async def test_calls_split_over_chunks_are_merged(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(
        asked(
            piece(0, "a", "volume", ""),
            piece(0, args='{"le'),
            piece(1, "b", "light", ""),
            piece(0, args='vel":3}'),
            piece(1, args='{"on":true}'),
            text="One moment.",
        )
    )
    events = await listen(llm)
    assert text_of(events) == "One moment."
    assert calls_of(events) == (ToolCall("a", "volume", '{"level":3}'), ToolCall("b", "light", '{"on":true}'))


async def test_calls_that_end_with_stop_are_calls(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(asked(piece(0, "a", "volume", "{}"), finish="stop"))
    assert calls_of(await listen(llm)) == (ToolCall("a", "volume", "{}"),)


async def test_made_up_ids_differ_from_those_of_the_conversation(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(asked(piece(0, "call_0", "volume", "{}"), piece(1, None, "light", "{}")))
    before = Message("assistant", "", (ToolCall("call_0", "volume", "{}"),))
    first, second = calls_of(await listen(llm, [*HELLO, before, Message("tool", "ok", call_id="call_0")]))
    assert len({"call_0", "", first.id, second.id}) == 4
    assert (first.name, second.name) == ("volume", "light")


async def test_an_endpoint_that_does_not_stream_is_understood(server: OpenAiServer, llm: OpenAiLlm) -> None:
    message = {"role": "assistant", "content": "Hi", "tool_calls": [piece(None, "a", "volume", '{"level": 1}')]}
    whole = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    body = json.dumps(whole, indent=1).encode()
    server.chat(Answer([body[:30], body[30:]], kind=JSON))
    events = await listen(llm)
    assert text_of(events) == "Hi"
    assert calls_of(events) == (ToolCall("a", "volume", '{"level": 1}'),)


@pytest.mark.parametrize("kind", [JSON, SSE, "text/plain", ""])
@pytest.mark.parametrize("finish", ["stop", None])
async def test_a_whole_answer_is_understood_whatever_type_it_is_said_to_have(
    server: OpenAiServer, llm: OpenAiLlm, kind: str, finish: str | None
) -> None:
    message = {"role": "assistant", "content": "Hi"}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}]}, indent=1).encode()
    server.chat(Answer([b"\n ", body[:9], body[9:]], kind=kind))
    assert text_of(await listen(llm)) == "Hi"


@pytest.mark.parametrize("kind", [JSON, "text/plain", ""])
async def test_a_stream_is_understood_whatever_type_it_is_said_to_have(
    server: OpenAiServer, llm: OpenAiLlm, kind: str
) -> None:
    server.chat(Answer(spoken("Hi", " there").body, kind=kind))
    assert text_of(await listen(llm)) == "Hi there"


async def test_reasoning_is_given_as_thoughts_and_not_said(server: OpenAiServer, llm: OpenAiLlm) -> None:
    chunks = sse(delta(reasoning_content="let me see"), delta(content="<thi"), delta(content="nk>hm</think>\n\nYes"))
    server.chat(Answer([*chunks, *sse(delta(content=".")), *sse(delta("stop")), DONE], kind=SSE))
    thoughts = [ThoughtDelta("let me see"), ThoughtDelta("hm")]
    events = await listen(llm)
    assert [event for event in events if isinstance(event, ThoughtDelta)] == thoughts
    assert text_of(events) == "Yes."


async def test_chunks_may_be_cut_anywhere(server: OpenAiServer, llm: OpenAiLlm) -> None:
    data = b": keep alive\r\n\r\n" + b"".join(spoken("早上", "好").body).replace(b"\n", b"\r\n")
    server.chat(Answer([data[at : at + 1] for at in range(len(data))], kind=SSE))
    assert text_of(await listen(llm)) == "早上好"


async def test_a_finished_answer_needs_no_done(server: OpenAiServer, llm: OpenAiLlm) -> None:
    body = sse(delta(content="Hi"), delta("length"))
    server.chat(Answer(body, kind=SSE), Answer(body, kind=SSE, then="silent"), Answer(body, kind=SSE, then="break"))
    for _ in range(3):
        assert text_of(await listen(llm)) == "Hi"


async def test_text_after_a_finish_reason_is_not_lost(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(Answer([*sse(delta("stop", content="Hi")), *sse(delta("stop", content=" you")), DONE], kind=SSE))
    assert text_of(await listen(llm)) == "Hi you"


async def test_a_finished_answer_leaves_its_connection_for_the_next(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(spoken("Hi"))
    for _ in range(3):
        await listen(llm)
    assert len(server.connections) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_failure_is_tried_again(server: OpenAiServer, llm: OpenAiLlm, status: int) -> None:
    server.chat(refused(status), refused(status), spoken("Hi"))
    assert text_of(await listen(llm)) == "Hi"
    assert len(server.requests) == 3


async def test_the_third_failure_is_told(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(refused(500, "boom"))
    with pytest.raises(ProviderError, match=r"^LLM http://127.0.0.1:\d+/v1 failed \(500, boom\)$") as caught:
        await listen(llm)
    assert caught.value.retryable
    assert len(server.requests) == 3


async def test_a_break_before_the_first_token_is_tried_again(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(spoken(then="break"), Answer(header=False, then="break"), spoken("Hi"))
    assert text_of(await listen(llm)) == "Hi"


async def test_a_break_among_the_thoughts_is_tried_again(server: OpenAiServer, llm: OpenAiLlm) -> None:
    thinking = sse(delta(reasoning_content="hm"), delta(content="<think>so"))
    server.chat(Answer(thinking, kind=SSE, then="break"), spoken("Hi"))
    assert text_of(await listen(llm)) == "Hi"


async def test_a_refused_key_is_told_without_the_key(
    server: OpenAiServer, llm: OpenAiLlm, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.chat(refused(401, "invalid_api_key", f"Incorrect API key provided: {KEY}"))
    with pytest.raises(ProviderError, match=r"refused the key \(401, invalid_api_key\)$") as caught:
        await listen(llm)
    assert not caught.value.retryable
    assert len(server.requests) == 1
    assert caught.value.__cause__ is None
    assert KEY not in str(caught.value) + caplog.text


async def test_a_refused_request_is_told_without_its_words(
    server: OpenAiServer, llm: OpenAiLlm, caplog: pytest.LogCaptureFixture
) -> None:
    server.chat(refused(400, "bad: hello there", "I do not like 'hello there'"))
    with pytest.raises(ProviderError, match=r"refused the request \(400\)$") as caught:
        await listen(llm)
    assert not caught.value.retryable
    assert "hello there" not in str(caught.value) + caplog.text


async def test_an_empty_account_is_not_asked_again(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(refused(429, "insufficient_quota"))
    with pytest.raises(ProviderError, match="insufficient_quota"):
        await listen(llm)
    assert len(server.requests) == 1


async def test_an_endpoint_that_is_away_is_told() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        llm = OpenAiLlm(f"http://user:{KEY}@127.0.0.1:{closed.getsockname()[1]}/v1?k={KEY}", None, "m", LIMIT)
        with pytest.raises(ProviderError, match=r"LLM http://127.0.0.1:\d+/v1 cannot be reached") as caught:
            await listen(llm)
    await llm.aclose()
    assert caught.value.retryable
    assert KEY not in str(caught.value)


async def test_a_break_in_the_middle_is_an_error_after_what_was_said(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(spoken("Good", then="break"))
    said: list[LlmEvent] = []
    with pytest.raises(ProviderError, match="broke off") as caught:
        async with asyncio.timeout(240):
            async for event in llm.stream(HELLO, []):
                said.append(event)  # noqa: PERF401 - what came before the error counts
    assert text_of(said) == "Good"
    assert caught.value.retryable
    assert len(server.requests) == 1


async def test_a_body_that_ends_too_early_is_an_error(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(Answer(sse(delta(content="Good")), kind=SSE))
    with pytest.raises(ProviderError, match="broke off"):
        await listen(llm)


async def test_half_a_call_is_never_asked_for(server: OpenAiServer, llm: OpenAiLlm) -> None:
    chunks = sse(delta(content="Wait"), delta(tool_calls=[piece(0, "a", "volume", "{}")]))
    server.chat(Answer(chunks, kind=SSE, then="break"))
    events: list[LlmEvent] = []
    with pytest.raises(ProviderError):
        async with asyncio.timeout(240):
            async for event in llm.stream(HELLO, []):
                events.append(event)  # noqa: PERF401 - what came before the error counts
    assert events == [TextDelta("Wait")]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(header=False, then="silent"), ""),
        (Answer(kind=SSE, then="silent"), ""),
        (spoken("Good", then="silent"), "Good"),
        (Answer([b": still here\n\n"] * 50, kind=SSE, then="silent"), ""),
    ],
)
async def test_silence_is_an_error_and_hangs_up(
    server: OpenAiServer, llm: OpenAiLlm, answer: Answer, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.chat(answer)
    leap, said = leaping(monkeypatch), list[LlmEvent]()
    async with asyncio.timeout(2 * LIMIT), asyncio.TaskGroup() as group:
        listening = group.create_task(_fall_silent(llm, said))
        await server.asked()
        while text_of(said) != words:
            await asyncio.sleep(0.01)
        leap(LIMIT + 1)
        assert (await listening).retryable
    assert await asyncio.to_thread(server.requests[0].hung_up.wait, 240)
    assert len(server.requests) == 1


async def test_filling_without_an_end_is_silence(
    server: OpenAiServer, llm: OpenAiLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    leap, feed = leaping(monkeypatch), BodyReader.feed

    def feed_late(reader: BodyReader, data: bytes) -> list[bytes]:
        leap(0.6 * LIMIT)
        return feed(reader, data)

    monkeypatch.setattr(BodyReader, "feed", feed_late)
    server.chat(Answer([b": still here\n\n"] * 10_000 + [*spoken("late").body], kind=SSE, pace=0.02))
    assert (await _fall_silent(llm, [])).retryable
    assert len(server.requests) == 1


async def _fall_silent(llm: OpenAiLlm, said: list[LlmEvent]) -> ProviderError:
    """Note what the model says until it is silent for too long."""
    with pytest.raises(ProviderError, match="silent for too long") as caught:
        async for event in llm.stream(HELLO, [OFFER]):
            said.append(event)  # noqa: PERF401 - the test looks at what came while more comes
    return caught.value


async def test_closing_the_iterator_hangs_up(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(spoken("Good", then="silent"))
    events = llm.stream(HELLO, [])
    async with asyncio.timeout(240):
        assert await anext(events) == TextDelta("Good")
        await events.aclose()
    assert await asyncio.to_thread(server.requests[0].hung_up.wait, 240)


async def test_cancelling_the_reader_hangs_up(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(spoken("Good", then="silent"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(LIMIT) as limit:
            async for _ in llm.stream(HELLO, []):
                limit.reschedule(asyncio.get_running_loop().time())
    assert await asyncio.to_thread(server.requests[0].hung_up.wait, 240)


@pytest.mark.parametrize(
    "chunk",
    [
        {"error": {"message": "overloaded", "code": 529}},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": "none"}}]},
        {"choices": "?"},
        [],
    ],
)
async def test_a_fault_inside_the_stream_is_an_error(server: OpenAiServer, llm: OpenAiLlm, chunk: object) -> None:
    body = [*sse(delta(content="Good")), b"data: " + json.dumps(chunk).encode() + b"\n\n"]
    server.chat(Answer(body, kind=SSE))
    with pytest.raises(ProviderError, match=r"reported an error|cannot be read"):
        await listen(llm)


async def test_a_line_without_an_end_is_an_error(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(Answer([*sse(delta(content="Good")), *([b"x" * 100_000] * 12)], kind=SSE, then="silent"))
    with pytest.raises(ProviderError, match="line without an end"):
        await listen(llm)


async def test_a_page_instead_of_an_answer_is_an_error(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(Answer([b"<html>welcome</html>"], kind="text/html"))
    with pytest.raises(ProviderError, match="sent a chunk that cannot be read"):
        await listen(llm)


async def test_slow_consumers_do_not_make_the_model_look_silent(
    server: OpenAiServer, llm: OpenAiLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.chat(replace(spoken("a", "b", "c"), pace=0.05))
    leap, said = leaping(monkeypatch), []
    async for event in llm.stream(HELLO, []):
        if not said:
            leap(LIMIT + 1)  # longer than the model may be silent
            await asyncio.sleep(0)  # what is over ends
        said.append(event)
    assert text_of(said) == "abc"


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://x/v1", "http://", "http://[x/v1", "http://h:port/v1"])
def test_a_base_url_that_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base URL of LLM"):
        OpenAiLlm(url, None, "m", LIMIT)


async def test_what_a_request_chooses_wins_over_what_is_usual(server: OpenAiServer) -> None:
    server.chat(spoken("ok"))
    llm = OpenAiLlm(server.url, KEY, "m", LIMIT, temperature=0.3, max_tokens=99)
    async with asyncio.timeout(240):
        assert [event async for event in llm.stream(HELLO, [], LlmOptions(temperature=0.0))]
    await llm.aclose()
    assert (server.requests[0].json["temperature"], server.requests[0].json["max_tokens"]) == (0.0, 99)


async def test_a_message_that_may_not_call_is_asked_for_with_its_tools(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(spoken("ok"))
    async with asyncio.timeout(240):
        assert [event async for event in llm.stream(HELLO, [OFFER], LlmOptions(may_call=False))]
    assert server.requests[0].json["tool_choice"] == "none"
    assert len(server.requests[0].json["tools"]) == 1


async def test_other_tasks_run_between_the_chunks_that_come_at_once(
    server: OpenAiServer, llm: OpenAiLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed, most = 0, 0
    feed = StreamedAnswer.feed

    def counted(answer: StreamedAnswer, payload: bytes) -> list[LlmEvent]:
        nonlocal fed
        fed += 1
        return feed(answer, payload)

    async def watch() -> None:
        nonlocal fed, most
        while True:
            most, fed = max(most, fed), 0
            await asyncio.sleep(0)

    monkeypatch.setattr(StreamedAnswer, "feed", counted)
    server.chat(Answer([b"data:{}\n" * 20_000, *sse(delta("stop", content="Hi")), DONE], kind=SSE))
    watching = asyncio.get_running_loop().create_task(watch())
    try:
        assert await listen(llm) == [TextDelta("Hi")]
    finally:
        watching.cancel()
    assert 0 < most < 1_000

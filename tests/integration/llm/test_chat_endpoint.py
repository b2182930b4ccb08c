import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from fleet.adapters.llm.chat_endpoint import ChatEndpoint, read_retry_after
from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.core.ports import LlmEvent, LlmOptions, Message, TextDelta, ToolCall, ToolOffer
from fleet.ground.errors import ProviderError
from tests.support.openai_server import DONE, SSE, Answer, OpenAiServer, delta, refused, run_openai_server, spoken, sse

LIMIT = 240.0
HELLO = [Message("user", "hello there")]
OFFER = ToolOffer("volume", "Sets it.", {"type": "object", "properties": {"level": {"type": "integer"}}})


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
    model = OpenAiLlm(server.url, None, "m", LIMIT)
    yield model
    await model.aclose()


async def listen(llm: OpenAiLlm, options: LlmOptions, messages: list[Message] = HELLO) -> list[LlmEvent]:
    async with asyncio.timeout(240):
        return [event async for event in llm.stream(messages, [OFFER], options)]


def busy(**headers: str) -> Answer:
    body = refused(429, "rate_limit_exceeded").body
    return Answer(body, 429, headers={name.replace("_", "-"): value for name, value in headers.items()})


async def test_a_busy_endpoint_is_asked_again_when_it_says(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(busy(retry_after="2"), spoken("Hi"))
    begun = asyncio.get_running_loop().time()
    assert await listen(llm, LlmOptions()) == [TextDelta("Hi")]
    assert asyncio.get_running_loop().time() - begun >= 2.0
    assert len(server.requests) == 2


async def test_an_endpoint_that_is_busy_for_too_long_is_not_waited_for(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(busy(retry_after="600"), spoken("Hi"))
    with pytest.raises(ProviderError, match="too busy"):
        await listen(llm, LlmOptions())
    assert len(server.requests) == 1


async def test_a_busy_endpoint_that_says_nothing_is_asked_again_soon(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(busy(retry_after="whenever"), spoken("Hi"))
    assert await listen(llm, LlmOptions()) == [TextDelta("Hi")]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        (
            {"retry-after": "Wed, 21 Oct 2015 07:28:05 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"},
            5.0,
        ),
        (
            {"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"},
            0.0,
        ),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:05 GMT"}, None),
        ({"retry-after": f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        (
            {"retry-after": "Wed, 21 Oct 2015 07:28:05 GMT", "date": "Mon, 23 Nov 2026 10:00:00 +99999999999999999"},
            None,
        ),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:05", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "٣"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == seconds


@pytest.mark.parametrize(
    "complaint",
    [
        "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) is supported.",
        "temperature: Extra inputs are not permitted",
    ],
)
async def test_a_choice_that_the_model_does_not_take_is_given_up(
    server: OpenAiServer, llm: OpenAiLlm, complaint: str
) -> None:
    server.chat(refused(400, "unsupported_value", complaint), spoken("Hi"))
    options = LlmOptions(temperature=0.7)
    assert await listen(llm, options) == [TextDelta("Hi")]
    assert await listen(llm, options) == [TextDelta("Hi")]
    assert ["temperature" in request.json for request in server.requests] == [True, False, False]


async def test_the_longest_answer_is_given_by_the_name_that_the_model_wants(
    server: OpenAiServer, llm: OpenAiLlm
) -> None:
    complaint = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    server.chat(refused(400, "unsupported_parameter", complaint), spoken("Hi"))
    assert await listen(llm, LlmOptions(max_tokens=7)) == [TextDelta("Hi")]
    assert server.requests[1].json["max_completion_tokens"] == 7


async def test_an_endpoint_that_knows_no_tool_choice_gets_none(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(refused(400, "invalid", "tool_choice is not supported by this server"), spoken("Hi"))
    assert await listen(llm, LlmOptions(may_call=False)) == [TextDelta("Hi")]
    assert "tool_choice" not in server.requests[1].json


@pytest.mark.parametrize(
    "refusal",
    [
        refused(400, "unsupported_parameter", "Unknown parameter: 'stream_options.include_usage'."),
        Answer([b'{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]}'], status=422),
        Answer([b"Bad Request"], status=400),
    ],
)
async def test_an_endpoint_that_counts_no_tokens_is_not_asked_for_them(
    server: OpenAiServer, llm: OpenAiLlm, refusal: Answer
) -> None:
    server.chat(refusal, spoken("Hi"))
    for _ in range(2):
        assert await listen(llm, LlmOptions()) == [TextDelta("Hi")]
    assert ["stream_options" in request.json for request in server.requests] == [True, False, False]


async def test_a_refusal_for_another_reason_does_not_end_the_counting(server: OpenAiServer, llm: OpenAiLlm) -> None:
    nothing = Answer([b""], status=400)
    server.chat(nothing, nothing, spoken("Hi"), nothing, spoken("Hi"))
    for kind in ("refused", "taken", "refused once"):
        if kind == "taken":
            assert await listen(llm, LlmOptions()) == [TextDelta("Hi")]
        else:
            with pytest.raises(ProviderError, match="refused the request"):
                await listen(llm, LlmOptions())
    assert ["stream_options" in request.json for request in server.requests] == [True, False, True, True]


async def test_a_complaint_about_something_else_is_told_at_once(server: OpenAiServer, llm: OpenAiLlm) -> None:
    server.chat(refused(400, "context_length_exceeded", "too long, temperature or not"), spoken("Hi"))
    with pytest.raises(ProviderError, match="refused the request"):
        await listen(llm, LlmOptions())
    assert len(server.requests) == 1


async def test_thoughts_and_signatures_are_given_back_with_the_calls_that_they_led_to(
    server: OpenAiServer, llm: OpenAiLlm
) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "volume", "arguments": "{}"}, "extra_content": {"g": {"s": 1}}}
    chunks = sse(delta(reasoning_content="let me "), delta(reasoning_content="see"), delta(tool_calls=[call]))
    server.chat(Answer([*chunks, *sse(delta("tool_calls")), DONE], kind=SSE), spoken("Done."))
    await listen(llm, LlmOptions())
    asked = Message("assistant", "", (ToolCall("a", "volume", "{}"),))
    await listen(llm, LlmOptions(), [*HELLO, asked, Message("tool", "ok", call_id="a")])
    message = server.requests[1].json["messages"][1]
    assert message["reasoning_content"] == "let me see"
    assert message["tool_calls"][0]["extra_content"] == {"g": {"s": 1}}


async def test_google_is_recognised() -> None:
    for url, is_google in (("https://generativelanguage.googleapis.com/v1beta/openai", True), ("http://h/v1", False)):
        endpoint = ChatEndpoint("LLM", url, None)
        assert endpoint.is_google is is_google
        await endpoint.aclose()


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry/library/some:4b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (400, "Function calling is not enabled for this model"),
        (500, "tools param requires --jinja flag"),
        (500, "Unsupported param: tools"),
    ],
)
async def test_what_to_do_about_an_endpoint_without_tools_is_told_once(
    server: OpenAiServer, llm: OpenAiLlm, caplog: pytest.LogCaptureFixture, status: int, message: str
) -> None:
    server.chat(refused(status, "", message))
    for _ in range(2):
        with pytest.raises(ProviderError):
            await listen(llm, LlmOptions())
    (told,) = [record for record in caplog.records if record.message == "endpoint takes no requests with tools"]
    assert told.levelno == logging.WARNING
    assert "LLM_MODEL" in str(vars(told)["advice"])


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid schema for function 'volume': array schema missing items."),
        (400, "tools[0].function.name: string does not match pattern"),
        (400, "max_tokens is not supported"),
        (404, "some model does not support tools"),
    ],
)
async def test_other_refusals_are_not_taken_for_a_lack_of_tools(
    server: OpenAiServer, llm: OpenAiLlm, caplog: pytest.LogCaptureFixture, status: int, message: str
) -> None:
    server.chat(refused(status, "", message))
    with pytest.raises(ProviderError):
        await listen(llm, LlmOptions())
    assert "takes no requests" not in caplog.text

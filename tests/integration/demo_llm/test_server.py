import asyncio
import json
import logging
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.core.ports import CallsAsked, Message, TextDelta, ToolOffer
from fleet.ground.errors import ConfigError
from fleet.workbench.demo_llm.server import LARGEST_BODY, MODEL, DemoLlmServer
from tests.support.demo_tools import ANSWERS, STATUS, STOCK


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        server = DemoLlmServer("127.0.0.1", 0)
        task = group.create_task(server.run(), name="demo model")
        await server.started.wait()
        yield f"http://127.0.0.1:{server.port}/v1"
        task.cancel()


@pytest.fixture
async def client(url: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as made:
        yield made


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def run_turn(client: AsyncOpenAI, text: str) -> tuple[list[tuple[str, Any]], str]:
    """Run a turn with the real SDK as any program would; return the calls and the answer."""
    messages: list[Any] = [user(text)]
    calls: list[tuple[str, Any]] = []
    for _ in range(5):
        made = await client.chat.completions.create(model="any", messages=messages, tools=STOCK)
        message = made.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return calls, message.content or ""
        for call in message.tool_calls:
            calls.append((call.function.name, json.loads(call.function.arguments)))
            answer = ANSWERS.get(call.function.name, "true")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": answer})
    raise AssertionError(calls)


async def test_the_sdk_runs_a_turn_of_three_messages(client: AsyncOpenAI) -> None:
    calls, answer = await run_turn(client, "turn up the volume")
    assert calls == [("get_device_status", {}), ("audio_speaker_set_volume", {"volume": 80})]
    assert answer == "Okay, the volume is now 80."


async def test_the_sdk_reads_streamed_text_and_usage(client: AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="any", messages=[user("你好")], stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == "你好。要我做什么？"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0


async def test_the_sdk_joins_streamed_calls(client: AsyncOpenAI) -> None:
    async with client.chat.completions.stream(
        model="any", messages=[user("音量调到三十，亮度调到五十")], tools=STOCK
    ) as stream:
        made = await stream.get_final_completion()
    calls = made.choices[0].message.tool_calls or []
    assert [(call.function.name, json.loads(call.function.arguments)) for call in calls] == [
        ("audio_speaker_set_volume", {"volume": 30}),
        ("screen_set_brightness", {"brightness": 50}),
    ]
    assert made.choices[0].finish_reason == "tool_calls"


async def test_fleets_own_adapter_talks_to_it(url: str) -> None:
    llm = OpenAiLlm(url, None, MODEL, 240.0)
    offers = [ToolOffer(**entry["function"]) for entry in STOCK]
    events = [event async for event in llm.stream([Message("user", "what is the volume")], offers)]
    (asked,) = [event for event in events if isinstance(event, CallsAsked)]
    history = [
        Message("system", "Be brief."),
        Message("user", "what is the volume"),
        Message("assistant", "", asked.calls),
        Message("tool", STATUS, call_id=asked.calls[0].id),
    ]
    said = [event.text async for event in llm.stream(history, offers) if isinstance(event, TextDelta)]
    await llm.aclose()
    assert "".join(said) == "The volume is 70."


async def test_a_bad_request_is_refused_as_openai_does(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await client.chat.completions.create(model="any", messages=[])
    assert refused.value.body == {
        "message": "Invalid value for 'messages': Tuple should have at least 1 item after validation, not 0.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "invalid_value",
    }


async def test_models_are_listed(client: AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == [MODEL]


async def test_other_paths_methods_and_sizes_have_error_bodies(url: str) -> None:
    async with httpx2.AsyncClient(trust_env=False, timeout=240) as http:
        answers = [
            await http.get(f"{url}/nothing"),
            await http.get(f"{url}/chat/completions"),
            await http.post(f"{url}/chat/completions", content=b" " * (LARGEST_BODY + 1)),
        ]
    assert [answer.status_code for answer in answers] == [404, 405, 413]
    assert all(answer.json()["error"]["type"] == "invalid_request_error" for answer in answers)


async def test_any_key_or_none_is_accepted(url: str) -> None:
    body = {"model": "x", "messages": [user("hello")]}
    async with httpx2.AsyncClient(trust_env=False, timeout=240) as http:
        answer = await http.post(f"{url}/chat/completions", json=body)
    assert answer.json()["choices"][0]["message"]["content"] == "Hello. What can I do for you?"


async def test_many_at_once_are_answered(client: AsyncOpenAI) -> None:
    async with asyncio.TaskGroup() as group:
        turns = [group.create_task(run_turn(client, f"set the volume to {n}"), name=f"turn {n}") for n in range(20)]
    assert [turn.result()[0] for turn in turns] == [[("audio_speaker_set_volume", {"volume": n})] for n in range(20)]


async def test_it_leaves_signals_alone_and_logs_no_words(client: AsyncOpenAI, caplog: pytest.LogCaptureFixture) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with caplog.at_level(logging.DEBUG, logger="fleet"):
        await run_turn(client, "what is the weather in Atlantis")
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert not [record for record in caplog.records if "Atlantis" in record.getMessage()]
    assert not [record for record in caplog.records if record.name == "uvicorn.access"]


async def test_a_taken_port_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError, match="cannot listen"):
        DemoLlmServer("127.0.0.1", int(url.split(":")[2].split("/")[0]))

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from fleet.assembly.llm import VOICE_SECONDS, chat_model
from fleet.core.ports import Message, TextDelta
from fleet.errors import ConfigError
from fleet.llm.llm_openai import OpenAiLlm
from fleet.settings import load
from tests.support.openai_server import OpenAiServer, refused, run_openai_server, spoken


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[OpenAiServer, OpenAiServer]]:
    with run_openai_server() as first, run_openai_server() as second:
        yield first, second


async def ask(**overrides: Any) -> str:
    async with asyncio.timeout(20), chat_model(load(**overrides)) as llm:
        events = [event async for event in llm.stream([Message("user", "hi")], [])]
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_without_an_endpoint_there_is_no_model() -> None:
    with pytest.raises(ConfigError, match="LLM_BASE_URL is missing"):
        async with chat_model(load()):
            pass


async def test_the_request_is_what_the_settings_say(servers: tuple[OpenAiServer, OpenAiServer]) -> None:
    server, _ = servers
    server.reset()
    server.chat(spoken("Hi"))
    chosen = {"llm_model": "mine", "llm_api_key": "k", "llm_temperature": 0.5, "llm_max_tokens": 7}
    assert await ask(llm_base_url=server.url, **chosen) == "Hi"
    request = server.requests[0]
    assert request.headers["authorization"] == "Bearer k"
    assert (request.json["model"], request.json["temperature"], request.json["max_tokens"]) == ("mine", 0.5, 7)


async def test_without_a_name_the_endpoints_own_model_is_asked(servers: tuple[OpenAiServer, OpenAiServer]) -> None:
    server, _ = servers
    server.reset()
    server.models("its-own")
    server.chat(spoken("Hi"))
    await ask(llm_base_url=server.url)
    assert server.requests[-1].json["model"] == "its-own"


async def test_the_fallback_has_its_own_address_key_and_model(servers: tuple[OpenAiServer, OpenAiServer]) -> None:
    first, second = servers
    first.reset()
    second.reset()
    first.chat(refused(401))
    second.chat(spoken("second"))
    fallback = {"llm_fallback_base_url": second.url, "llm_fallback_model": "other", "llm_fallback_api_key": "k2"}
    assert await ask(llm_base_url=first.url, llm_model="mine", llm_api_key="k1", **fallback) == "second"
    assert first.requests[0].headers["authorization"] == "Bearer k1"
    assert second.requests[0].headers["authorization"] == "Bearer k2"
    assert second.requests[0].json["model"] == "other"


@pytest.mark.parametrize(("given", "patience"), [({}, VOICE_SECONDS), ({"llm_timeout": 3.0}, 3.0)])
async def test_patience_is_the_callers_where_nothing_is_set(given: dict[str, float], patience: float) -> None:
    async with chat_model(load(llm_base_url="http://localhost:1/v1", **given)) as llm:
        assert isinstance(llm, OpenAiLlm)
        assert llm._timeout == patience
    async with chat_model(load(llm_base_url="http://localhost:1/v1"), 120.0) as llm:
        assert isinstance(llm, OpenAiLlm)
        assert llm._timeout == 120.0

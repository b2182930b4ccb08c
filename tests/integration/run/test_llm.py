import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fleet.adapters.llm import model_name
from fleet.adapters.sealing import Sealer, new_key
from fleet.core.ports import Message, TextDelta
from fleet.ground.errors import ConfigError, ProviderError, ProviderTimeout
from fleet.ground.settings import load
from fleet.run.llm import VOICE_SECONDS, chat_model, open_models, silence_limit
from fleet.wire.agents import NO_AGENT, AgentDocument, ChatChoice, CompiledAgent, Endpoint
from tests.support.leaping import leaping
from tests.support.openai_server import SSE, Answer, OpenAiServer, delta, refused, run_openai_server, spoken, sse


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[OpenAiServer, OpenAiServer]]:
    with run_openai_server() as first, run_openai_server() as second:
        yield first, second


LIMIT = 240.0


async def ask(on_word: Callable[[], None] = lambda: None, **overrides: Any) -> str:
    patient = {"llm_timeout": LIMIT, "llm_silence_seconds": LIMIT}
    words = []
    async with asyncio.timeout(10 * LIMIT), chat_model(load(**{**patient, **overrides})) as llm:
        async for event in llm.stream([Message("user", "hi")], []):
            if isinstance(event, TextDelta):
                words.append(event.text)
                on_word()
    return "".join(words)


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


async def test_without_a_name_the_endpoints_own_model_is_asked(
    servers: tuple[OpenAiServer, OpenAiServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = servers
    monkeypatch.setattr(model_name, "LISTING_SECONDS", LIMIT)
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


@pytest.mark.parametrize(
    ("given", "borne"),
    [
        ({}, 8.0),
        ({"llm_silence_seconds": 3.0}, 3.0),
        ({"llm_timeout": 5.0}, 5.0),
        ({"llm_timeout": 5.0, "llm_silence_seconds": 6.0}, 5.0),
        ({"llm_timeout": 500.0}, 8.0),
    ],
)
def test_silence_is_borne_as_long_as_the_caller_says_where_nothing_is_set(
    given: dict[str, float], borne: float
) -> None:
    assert silence_limit(load(**given), VOICE_SECONDS) == borne


async def test_a_model_that_falls_silent_is_waited_for_as_long_as_silence_is_borne(
    servers: tuple[OpenAiServer, OpenAiServer],
) -> None:
    server, _ = servers
    server.reset()
    server.chat(spoken("Hi", then="silent"))
    with pytest.raises(ProviderTimeout, match="was silent for too long"):
        await ask(llm_base_url=server.url, llm_model="m", llm_silence_seconds=0.2)


@pytest.mark.parametrize("fallback", [False, True])
async def test_a_model_that_trickles_is_cut_off_when_its_time_is_over(
    servers: tuple[OpenAiServer, OpenAiServer], fallback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = servers
    leap = leaping(monkeypatch)
    endless = Answer([*sse(*[delta(content="word ")] * 10_000)], kind=SSE, pace=0.02)
    for server in servers:
        server.reset()
        server.chat(endless)
    if fallback:
        first.chat(refused(401))
    more = {"llm_fallback_base_url": second.url, "llm_fallback_model": "m"} if fallback else {}
    with pytest.raises(ProviderTimeout, match=r"did not finish its answer within 240 s"):
        # Each word comes long before the model would count as silent.
        await ask(lambda: leap(LIMIT / 20), llm_base_url=first.url, llm_model="m", **more)


async def test_an_agent_asks_its_own_endpoint_with_its_own_key_and_model(
    servers: tuple[OpenAiServer, OpenAiServer],
) -> None:
    usual, own = servers
    usual.reset()
    own.reset()
    usual.chat(spoken("usual"))
    own.chat(spoken("own"), spoken("own"))
    secret = new_key()
    chosen = load(llm_base_url=usual.url, llm_model="mine", llm_api_key="k1", secret_keys=secret)
    endpoint = Endpoint(base_url=own.url, key=Sealer(secret).seal("k2"), model="theirs")
    agent = CompiledAgent(id="1", endpoints={"chat": endpoint})
    other = agent.model_copy(update={"document": AgentDocument(chat=ChatChoice(model="another"))})
    unreadable = CompiledAgent(id="2", endpoints={"chat": endpoint.model_copy(update={"key": "x"})})
    async with asyncio.timeout(240), open_models(chosen) as models:
        said = []
        for one in (NO_AGENT, agent, other):
            events = (await models.find(one)).stream([Message("user", "hi")], [])
            said.append("".join([event.text async for event in events if isinstance(event, TextDelta)]))
        assert await models.find(agent) is await models.find(agent)
        with pytest.raises(ProviderError, match="FLEET_SECRET_KEYS"):
            await models.find(unreadable)
    assert said == ["usual", "own", "own"]
    assert [request.json["model"] for request in own.requests] == ["theirs", "another"]
    assert own.requests[0].headers["authorization"] == "Bearer k2"
    assert usual.requests[0].headers["authorization"] == "Bearer k1"

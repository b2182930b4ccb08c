import asyncio
import socket
from collections.abc import Iterator

import pytest

from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.adapters.llm.model_name import DOCUMENTED, choose
from fleet.core.ports import Message
from fleet.ground.errors import ProviderError
from tests.support.openai_server import Answer, OpenAiServer, refused, run_openai_server, spoken

LIMIT = 240.0


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAiServer]:
    with run_openai_server() as running:
        yield running


@pytest.fixture
def server(running_server: OpenAiServer) -> OpenAiServer:
    running_server.reset()
    running_server.chat(spoken("Hi"))
    return running_server


async def ask(server: OpenAiServer, model: str | None, times: int = 1) -> list[str]:
    """Return the models that were asked for."""
    llm = OpenAiLlm(server.url, None, model, LIMIT)
    for _ in range(times):
        async with asyncio.timeout(240):
            assert [event async for event in llm.stream([Message("user", "hi")], [])]
    await llm.aclose()
    return [request.json["model"] for request in server.requests if request.path.endswith("completions")]


def listings(server: OpenAiServer) -> int:
    return sum(request.path.endswith("/models") for request in server.requests)


async def test_the_only_model_of_an_endpoint_is_used(server: OpenAiServer) -> None:
    server.models("qwen2.5-7b-instruct")
    assert await ask(server, None, times=3) == ["qwen2.5-7b-instruct"] * 3
    assert listings(server) == 1, "it is asked for once"


async def test_a_given_name_is_used_unasked(server: OpenAiServer) -> None:
    server.models("other")
    assert await ask(server, "mine") == ["mine"]
    assert listings(server) == 0


@pytest.mark.parametrize(
    "answer", [*map(refused, (401, 404, 429, 500, 501)), Answer([b"<html>"]), Answer([b'{"data": 5}'])]
)
async def test_an_endpoint_without_a_list_is_asked_for_the_documented_model(
    server: OpenAiServer, answer: Answer
) -> None:
    server.script("models", answer)
    assert await ask(server, None) == [DOCUMENTED]


async def test_many_turns_at_once_ask_once(server: OpenAiServer) -> None:
    server.models("one")
    llm = OpenAiLlm(server.url, None, None, LIMIT)

    async def turn() -> None:
        assert [event async for event in llm.stream([Message("user", "hi")], [])]

    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(turn(), name=f"turn {number}")
    await llm.aclose()
    assert listings(server) == 1


async def test_a_model_that_is_gone_is_looked_for_again(server: OpenAiServer) -> None:
    server.models("old")
    llm = OpenAiLlm(server.url, None, None, LIMIT)
    async with asyncio.timeout(240):
        assert [event async for event in llm.stream([Message("user", "hi")], [])]
        server.chat(refused(404, "model_not_found"), spoken("Hi"))
        server.models("new")
        with pytest.raises(ProviderError, match="no such address or model"):
            assert [event async for event in llm.stream([Message("user", "hi")], [])]
        assert [event async for event in llm.stream([Message("user", "hi")], [])]
    await llm.aclose()
    assert server.requests[-1].json["model"] == "new"


async def test_an_endpoint_that_is_away_is_told() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        llm = OpenAiLlm(f"http://127.0.0.1:{closed.getsockname()[1]}/v1", None, None, LIMIT)
        with pytest.raises(ProviderError, match="cannot be reached"):
            async with asyncio.timeout(240):
                assert [event async for event in llm.stream([Message("user", "hi")], [])]
    await llm.aclose()


@pytest.mark.parametrize(
    ("listed", "chosen"),
    [
        ([], DOCUMENTED),
        (["a"], "a"),
        (["a", "b"], "a"),
        (["a", DOCUMENTED], DOCUMENTED),
        (["text-embedding-3", "whisper-1", "bge-m3", "chat"], "chat"),
        (["nomic-embed-text"], "nomic-embed-text"),
    ],
)
def test_of_several_models_the_first_that_chats_is_chosen(listed: list[str], chosen: str) -> None:
    assert choose(listed) == chosen

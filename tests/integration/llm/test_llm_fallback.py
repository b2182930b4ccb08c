import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from fleet.adapters.llm.llm_fallback import FallbackLlm
from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.adapters.llm.outage import FIRST_PAUSE
from fleet.core.ports import LlmEvent, Message, TextDelta
from fleet.ground.errors import ProviderError
from tests.support.leaping import leaping
from tests.support.openai_server import Answer, OpenAiServer, refused, run_openai_server, spoken

LIMIT = 240.0
HELLO = [Message("user", "hello there")]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[OpenAiServer, OpenAiServer]]:
    with run_openai_server() as first, run_openai_server() as second:
        yield first, second


@dataclass
class Pair:
    first: OpenAiServer
    second: OpenAiServer
    llm: FallbackLlm
    now: float = 0.0

    @property
    def asked(self) -> tuple[int, int]:
        return len(self.first.requests), len(self.second.requests)

    async def listen(self, limit: float = LIMIT) -> str:
        async with asyncio.timeout(limit):
            events = [event async for event in self.llm.stream(HELLO, [])]
        return "".join(event.text for event in events if isinstance(event, TextDelta))


@asynccontextmanager
async def pair_of(servers: tuple[OpenAiServer, OpenAiServer]) -> AsyncIterator[Pair]:
    first, second = (OpenAiLlm(server.url, None, "m", LIMIT) for server in servers)
    for server in servers:
        server.reset()
    pair = Pair(*servers, FallbackLlm(first, second, lambda: pair.now))
    pair.second.chat(spoken("second"))
    yield pair
    await first.aclose()
    await second.aclose()


@pytest.fixture
async def pair(running: tuple[OpenAiServer, OpenAiServer]) -> AsyncIterator[Pair]:
    async with pair_of(running) as pair:
        yield pair


async def test_the_second_is_not_asked_while_the_first_works(pair: Pair) -> None:
    pair.first.chat(spoken("first"))
    assert [await pair.listen() for _ in range(2)] == ["first", "first"]
    assert pair.asked == (2, 0)


@pytest.mark.parametrize(
    "answer",
    [refused(500), refused(401), refused(404), refused(429, "insufficient_quota"), spoken(then="break"), Answer([b""])],
    ids=["500", "key", "model", "quota", "break", "nothing"],
)
async def test_the_second_answers_when_the_first_fails_before_its_first_word(pair: Pair, answer: Answer) -> None:
    pair.first.chat(answer)
    assert await pair.listen() == "second"


async def test_a_silent_first_costs_one_turn_its_patience_and_the_next_nothing(
    running: tuple[OpenAiServer, OpenAiServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    leap = leaping(monkeypatch)
    async with pair_of(running) as pair, asyncio.TaskGroup() as group:
        pair.first.chat(Answer(header=False, then="silent"))
        listening = group.create_task(pair.listen(2 * LIMIT))
        await pair.first.asked()
        leap(LIMIT + 1)
        assert await listening == "second"
        assert await asyncio.to_thread(pair.first.requests[0].hung_up.wait, 240)
        assert await pair.listen() == "second"
        assert pair.asked == (1, 2)


async def test_a_first_that_comes_back_is_found_after_a_while(pair: Pair) -> None:
    pair.first.chat(refused(401), spoken("first"))
    assert await pair.listen() == "second"
    pair.now += FIRST_PAUSE - 0.1
    assert await pair.listen() == "second"
    pair.now += 0.2
    assert [await pair.listen() for _ in range(2)] == ["first", "first"]
    assert pair.asked == (3, 2)


async def test_a_request_that_the_first_does_not_take_is_no_outage(pair: Pair) -> None:
    pair.first.chat(refused(400, "context_length_exceeded"), spoken("first"))
    assert [await pair.listen() for _ in range(2)] == ["second", "first"]


async def test_the_second_does_not_go_on_with_what_the_first_began(pair: Pair) -> None:
    pair.first.chat(spoken("Good", then="break"))
    said: list[LlmEvent] = []
    with pytest.raises(ProviderError, match="broke off"):
        async with asyncio.timeout(240):
            async for event in pair.llm.stream(HELLO, []):
                said.append(event)  # noqa: PERF401 - what came before the error counts
    assert said == [TextDelta("Good")]
    assert pair.asked == (1, 0)


async def test_when_both_fail_the_last_failure_is_told(pair: Pair) -> None:
    pair.first.chat(refused(401))
    pair.second.chat(refused(403))
    with pytest.raises(ProviderError, match="403"):
        await pair.listen()


async def test_a_first_that_was_left_alone_is_the_last_resort(pair: Pair) -> None:
    pair.first.chat(refused(401), spoken("first"))
    assert await pair.listen() == "second"
    pair.second.chat(refused(401))
    assert await pair.listen() == "first"


@pytest.mark.parametrize("fails", [False, True])
async def test_closing_the_iterator_hangs_up_whoever_answers(pair: Pair, fails: bool) -> None:
    server = pair.second if fails else pair.first
    pair.first.chat(refused(401))
    server.chat(spoken("Good", then="silent"))
    events = pair.llm.stream(HELLO, [])
    async with asyncio.timeout(240):
        assert await anext(events) == TextDelta("Good")
        await events.aclose()
    assert await asyncio.to_thread(server.requests[0].hung_up.wait, 240)

"""How much of a prompt an endpoint with a prompt cache can reuse, and what the server counts of it."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.adapters.llm.llm_timed import TimedLlm
from fleet.core.agent_settings import OneModel
from fleet.core.ports import TokenUsage
from fleet.ground.metrics import providers
from fleet.roles.worker.turns import turn
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.scene import Scene, stand, tool, work
from tests.integration.worker.scripted import PATIENCE
from tests.support.mosquitto_server import MosquittoServer
from tests.support.openai_server import DONE, SSE, Answer, OpenAiServer, Request, delta, run_openai_server, sse

TURNS = 30
TOKEN = 4
"""Characters."""
SHARE = 0.8


class PrefixCounter:
    """Answers chats, and counts as OpenAI does which part of tools and messages began an earlier request."""

    def __init__(self) -> None:
        self.known: list[str] = []
        self.shares: list[float] = []

    def __call__(self, request: Request) -> Answer:
        assert request.json["stream_options"] == {"include_usage": True}
        prompt = json.dumps(request.json.get("tools"), ensure_ascii=False)
        prompt += json.dumps(request.json["messages"], ensure_ascii=False)
        cached = max((_equal(prompt, earlier) for earlier in self.known), default=0) // TOKEN
        self.known.append(prompt)
        self.shares.append(cached * TOKEN / len(prompt))
        usage = {
            "prompt_tokens": len(prompt) // TOKEN,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        words = f"This is answer number {len(self.known)}, and it is as long as spoken answers usually are."
        chunks = (delta(role="assistant", content=""), delta(content=words), delta("stop"))
        return Answer([*sse(*chunks, {"choices": [], "usage": usage}), DONE], kind=SSE)


def _equal(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@pytest.fixture
async def endpoint() -> AsyncIterator[OpenAiServer]:
    with run_openai_server() as server:
        yield server


async def test_most_of_each_prompt_began_the_one_before(
    endpoint: OpenAiServer,
    redis_url: str,
    broker: MosquittoServer,
    keys: CredentialKeys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    minutes = count()
    start = datetime(2026, 11, 22, 17, 36, tzinfo=UTC)
    monkeypatch.setattr(turn, "local_now", lambda _: start + timedelta(minutes=next(minutes)))
    counter = PrefixCounter()
    endpoint.answer("chat/completions", counter)
    before = providers.tokens.read()
    async with stand(redis_url, broker, keys) as stage:
        model = OpenAiLlm(endpoint.url, None, "m", PATIENCE)
        stage.resources = replace(stage.resources, models=OneModel(TimedLlm(model, PATIENCE)))
        async with work(stage.resources, broker):
            await stage.reconnect()
            session = await stage.prepare(*(tool(f"self.lamp_{number}.switch") for number in range(6)))
            await converse(stage, session)
            journal = await stage.resources.conversations.journal(stage.device.mac)
            await stage.device.close()
        await model.aclose()
    assert len(counter.shares) == TURNS
    later = counter.shares[1:]
    assert sum(later) / len(later) > SHARE
    # The blocks were cut, and with most turns nothing was.
    assert len(json.loads(endpoint.requests[-1].body)["messages"]) < 32
    assert sum(share < SHARE for share in later) <= TURNS * 2 / 10
    assert journal is not None
    last = len(counter.known[-1])
    assert journal.usage == TokenUsage(last // TOKEN, round(counter.shares[-1] * last) // TOKEN, 7)
    counted = providers.tokens.read() - before
    assert counted[("input",)] == sum(len(prompt) // TOKEN for prompt in counter.known)
    assert counted[("output",)] == 7 * TURNS
    assert counted[("cached",)] > SHARE * counted[("input",)]


async def converse(stage: Scene, session: str) -> None:
    for number in range(TURNS):
        await stage.utter(session, f"This is question number {number}, and it is about the lamp in the kitchen.")
        assert await stage.spoken()

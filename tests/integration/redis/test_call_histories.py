"""Any interleaving of two workers that begin, end and sweep calls leaves each call with exactly one outcome."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import CALL_KEPT_MS
from fleet.adapters.redis.sessions.calls import MOST_PENDING, CallBegun, CallKnown, CallRefused, CallTable
from tests.support.redis_store import opened

NAMES = 4

Kind = Literal["begin", "overdue", "repeat", "complete", "give up", "not sent", "sweep"]
Step = tuple[Kind, int, int]
"""What is done, by which worker, and to which call."""

KINDS: list[Kind] = ["begin", "overdue", "repeat", "complete", "complete", "give up", "not sent", "sweep"]
STEPS = st.tuples(st.sampled_from(KINDS), st.integers(0, 1), st.integers(0, NAMES - 1))
HISTORIES = st.lists(st.lists(STEPS, min_size=1, max_size=5), min_size=1, max_size=6)
"""Rounds one after the other; the steps of a round at the same time."""


@dataclass
class Fleet:
    """Two workers, one device, and what they were told."""

    workers: list[CallTable]
    store: Store
    mac: str
    begun: dict[str, int] = field(default_factory=dict)
    """The id of each call, by its name."""
    allowed: Counter[str] = field(default_factory=Counter)
    """How often each call was allowed to be sent."""
    ended: Counter[int] = field(default_factory=Counter)
    """How often somebody was told to have ended a call."""
    seen: dict[int, str] = field(default_factory=dict)
    """The state in which each call was seen last."""

    async def take(self, step: Step) -> None:
        kind, worker, name = step
        calls, key = self.workers[worker], f"call {name}"
        if kind in ("begin", "overdue"):
            await self._begin(calls, key, 60 if kind == "begin" else 0.001)
        elif kind == "repeat":
            await self._repeat(key)
        elif kind == "sweep":
            for mac, number in await calls.sweep(self.store.keys.shard(self.mac)):
                self.ended[int(number)] += mac == self.mac
        elif key in self.begun:
            await self._end(calls, kind, self.begun[key])

    async def _begin(self, calls: CallTable, key: str, seconds: float) -> None:
        answer = await calls.begin(self.mac, key, seconds)
        assert not isinstance(answer, CallRefused), answer
        assert self.begun.setdefault(key, answer.id) == answer.id
        self.allowed[key] += isinstance(answer, CallBegun)

    async def _repeat(self, key: str) -> None:
        """Begin as a client that lost the first answer: the same words twice, and only the second answer counts."""
        keys, number = self.store.keys, secrets.randbelow(2**30)
        words = [self.mac, CALL_KEPT_MS, MOST_PENDING, 1, number, secrets.token_hex(8), 60_000, "a tool"]
        names = [
            keys.deadlines(keys.shard(self.mac)),
            keys.device(self.mac),
            keys.call(self.mac, number),
            keys.idempotency(self.mac, key),
        ]
        first = await self.store.call("fleet_call_begin", names, words)
        second = await self.store.call("fleet_call_begin", names, words)
        assert first[1] == second[1]
        assert first[0] != "GO" or second[0] != "GO"
        self.begun.setdefault(key, int(second[1]))
        self.allowed[key] += first[0] == "GO"

    async def _end(self, calls: CallTable, kind: Kind, number: int) -> None:
        if kind == "complete":
            ended = await calls.complete(self.mac, str(number), "answer")
        else:
            ended = await calls.give_up(self.mac, number, sent=kind == "give up")
        self.ended[number] += ended

    async def check(self) -> None:
        """Nobody was allowed to send a call twice; what has ended stays as it ended."""
        assert all(count == 1 for count in self.allowed.values()), self.allowed
        for key, number in self.begun.items():
            known = await self.workers[0].begin(self.mac, key, 60)
            assert isinstance(known, CallKnown) and known.id == number
            before = self.seen.get(number, "pending")
            assert before in ("pending", known.state), (before, known.state)
            self.seen[number] = known.state
            assert self.ended[number] == (known.state != "pending")
            late = await self.workers[0].late(self.mac, number)
            assert late is None or (known.state == "unknown" and known.result == late)

    async def settle(self) -> None:
        """Answer what is left."""
        for number in self.begun.values():
            await self._end(self.workers[1], "complete", number)
        await self.check()
        assert set(self.ended.values()) <= {1}
        assert await self.store.client.hget(self.store.keys.device(self.mac), "np") in (None, "0")
        pending = await self.store.client.zrange(self.store.keys.deadlines(self.store.keys.shard(self.mac)), 0, -1)
        assert not [member for member in pending if member.startswith(self.mac)]


@pytest.fixture
async def stores(redis_engines: str) -> AsyncIterator[tuple[Store, Store]]:
    async with opened(redis_engines) as one, opened(redis_engines) as other:
        yield one, other


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
async def test_each_call_has_one_outcome(stores: tuple[Store, Store], history: list[list[Step]]) -> None:
    mac = ":".join(f"{byte:02x}" for byte in secrets.token_bytes(6))
    fleet = Fleet([CallTable(store) for store in stores], stores[0], mac)
    async with asyncio.timeout(240):
        for steps in history:
            async with asyncio.TaskGroup() as group:
                for step in steps:
                    group.create_task(fleet.take(step))
            await fleet.check()
        await fleet.settle()

"""What time does to sessions of the gateway; tests/integration/redis/test_gateway_sessions.py has the rest."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.gateway_sessions import GatewaySessions
from fleet.core.ports import Message
from fleet.core.server_tools import Persona
from tests.support.virtual_time import elapse

NOW = datetime(2025, 2, 21, 10, 30, tzinfo=UTC)
LATER = datetime(2025, 2, 21, 10, 40, tzinfo=UTC)


async def test_a_new_session_was_used_when_it_was_created(store: Store) -> None:
    begun = await GatewaySessions(store, 60).begin(NOW)
    assert begun.created == begun.used == "2025-02-21T10:30:00.000+00:00"
    assert (begun.persona, begun.history) == (Persona(), ())
    assert await GatewaySessions(store, 60).read(begun.id, LATER) == begun


async def test_a_session_expires_after_its_last_use(store: Store) -> None:
    sessions = GatewaySessions(store, 60)
    begun = await sessions.begin(NOW)
    for _ in range(3):
        await elapse(59)
        assert await sessions.read(begun.id, NOW)
    await elapse(61)
    assert await sessions.read(begun.id, NOW) is None


async def test_a_session_that_could_not_be_stored_is_stored_later(store: Store) -> None:
    sessions = GatewaySessions(store, 60)
    begun = await sessions.begin(NOW)
    await store.client.flushall()
    await sessions.keep(begun, LATER)
    found = await sessions.read(begun.id, LATER)
    assert found and (found.created, found.used) == (begun.created, "2025-02-21T10:40:00.000+00:00")


async def test_a_session_is_read_and_remembered_in_one_round_trip_each(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = GatewaySessions(store, 60)
    begun = await sessions.begin(NOW)
    await sessions.read(begun.id, NOW)  # which loads the functions
    ask, asked = store.client.pipelined.ask, list[list[str]]()

    async def count(commands: Sequence[Sequence[Any]]) -> list[Any]:
        asked.append([str(words[0]) for words in commands])
        return await ask(commands)

    monkeypatch.setattr(store.client.pipelined, "ask", count)
    said = (Message("user", "hello"), Message("assistant", "Hi."))
    await sessions.remember(begun.id, said, NOW)
    assert asked == [["HSET", "RPUSH", "LTRIM", "EXPIRE", "EXPIRE"]]
    found = await sessions.read(begun.id, LATER)
    assert found
    assert found.history == said
    assert [commands[:1] for commands in asked[1:]] == [["FCALL"]]

"""What time does to sessions of the gateway; tests/integration/redis/test_gateway_sessions.py has the rest."""

from datetime import UTC, datetime

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.gateway_sessions import GatewaySessions
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

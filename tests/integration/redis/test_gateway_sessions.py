import asyncio
from datetime import UTC, datetime

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.gateway_sessions import BegunSessions, GatewaySessions
from fleet.core.ports import Message
from fleet.core.server_tools import Persona

NOW = datetime(2025, 2, 21, 10, 30, tzinfo=UTC)
LATER = datetime(2025, 2, 21, 10, 40, tzinfo=UTC)
PATIENCE = 240


def messages(count: int) -> list[Message]:
    return [Message("user" if number % 2 == 0 else "assistant", f"text {number}") for number in range(count)]


async def test_session_is_found_again_with_all_that_was_kept(store: Store) -> None:
    sessions = GatewaySessions(store, 60)
    begun = await sessions.begin(NOW)
    await sessions.remember(begun.id, messages(2), NOW)
    await sessions.change(begun.id, Persona("ja", "pirate"))
    found = await GatewaySessions(store, 60).read(begun.id, LATER)
    assert found is not None
    assert (found.id, found.persona, found.history) == (begun.id, Persona("ja", "pirate"), tuple(messages(2)))
    assert found.created == "2025-02-21T10:30:00.000+00:00"
    again = await sessions.read(begun.id, LATER)
    assert again is not None
    assert (again.created, again.used) == (found.created, "2025-02-21T10:40:00.000+00:00")


async def test_history_keeps_the_newest_ten_and_no_endless_text(store: Store) -> None:
    sessions = GatewaySessions(store, 60)
    begun = await sessions.begin(NOW)
    for number in range(8):
        await sessions.remember(begun.id, (Message("user", f"q{number}"), Message("assistant", "x" * 30_000)), NOW)
    found = await sessions.read(begun.id, NOW)
    assert found is not None
    assert [message.text for message in found.history[::2]] == ["q3", "q4", "q5", "q6", "q7"]
    assert len(found.history[1].text) == 20_000


async def test_unknown_ended_and_made_up_ids_are_nobody(store: Store) -> None:
    sessions = GatewaySessions(store, 60)
    begun, other = await sessions.begin(NOW), await sessions.begin(NOW)
    await sessions.remember(begun.id, messages(2), NOW)
    await sessions.end(begun.id)
    for unknown in (begun.id, "f" * 32, "", "*", f"{{{other.id}}}", other.id.upper() + "x", f"{other.id}:h"):
        assert await sessions.read(unknown, NOW) is None
    assert await sessions.read(other.id, NOW) is not None


async def test_what_is_written_after_the_end_does_not_bring_a_session_back(store: Store) -> None:
    sessions = GatewaySessions(store, 60)
    begun = await sessions.begin(NOW)
    await sessions.end(begun.id)
    await sessions.remember(begun.id, messages(2), NOW)
    await sessions.change(begun.id, Persona("ja"))
    assert await sessions.read(begun.id, NOW) is None
    assert await store.client.ttl(f"gw:{{{begun.id}}}") > 0, "the rest goes away by itself"


async def test_session_ends_so_long_after_its_last_use(store: Store) -> None:
    sessions = GatewaySessions(store, 1)
    begun, used = await sessions.begin(NOW), await GatewaySessions(store, 1000).begin(NOW)
    assert await GatewaySessions(store, 1000).read(used.id, NOW) is not None
    async with asyncio.timeout(PATIENCE):
        while await store.client.exists(f"gw:{{{begun.id}}}"):
            await asyncio.sleep(0.05)
    assert await sessions.read(begun.id, NOW) is None
    assert await store.client.ttl(f"gw:{{{used.id}}}") > 1000 - PATIENCE


async def test_damaged_history_is_left_out(store: Store) -> None:
    sessions = GatewaySessions(store, 60)
    begun = await sessions.begin(NOW)
    await store.ask(store.client.execute_command("RPUSH", f"gw:{{{begun.id}}}:h", "no json"))
    await sessions.remember(begun.id, messages(2), NOW)
    found = await sessions.read(begun.id, NOW)
    assert found is not None
    assert found.history == tuple(messages(2))


async def test_ids_are_secrets_of_128_bits(store: Store) -> None:
    sessions = GatewaySessions(store, 60)
    ids = {(await sessions.begin(NOW)).id for _ in range(20)}
    assert len(ids) == 20
    assert {len(one) for one in ids} == {32}


async def test_for_one_session_too_many_one_of_the_site_with_the_most_ends(store: Store) -> None:
    sessions = GatewaySessions(store, 60)
    sessions.begun = BegunSessions(60, most=4)
    other = await sessions.begin(NOW, "other")
    used = await sessions.begin(NOW, "many")
    begun = [await sessions.begin(NOW, "many") for _ in range(2)]
    assert await sessions.read(used.id, NOW)
    begun += [await sessions.begin(NOW, "many") for _ in range(2)]
    living = [session.id for session in (other, used, *begun) if await sessions.read(session.id, NOW)]
    assert living == [other.id, used.id, *(session.id for session in begun[2:])]
    assert len(sessions.begun) == 4


async def test_sessions_that_ended_or_expired_leave_their_places(store: Store) -> None:
    now = [0.0]
    sessions = GatewaySessions(store, 60)
    sessions.begun = BegunSessions(60, clock=lambda: now[0])
    begun = [await sessions.begin(NOW) for _ in range(4)]
    await sessions.end(begun[0].id)
    now[0] = 50.0
    await sessions.remember(begun[1].id, messages(2), NOW)
    assert len(sessions.begun) == 3
    now[0] = 61.0
    assert len(sessions.begun) == 1

"""Tickets for a voice connection; whole connections are tested in integration/control/test_talks."""

from fleet.adapters.redis.access.voice_tickets import LONGEST_TICKET, TICKET_SECONDS, VoiceTicket, VoiceTickets
from fleet.adapters.redis.client.store import Store
from tests.support.virtual_time import elapse

TICKET = VoiceTicket("02:00:00:00:00:01", "4b6c2a10-client", 3, 1_900_000_000_000)


async def test_a_ticket_is_taken_once_and_by_its_secret_only(store: Store) -> None:
    tickets = VoiceTickets(store)
    first, other = [await tickets.issue(TICKET) for _ in range(2)]
    assert first != other and len(first) <= LONGEST_TICKET
    strange = ("", first[:-1], "x" * LONGEST_TICKET, "x" * (LONGEST_TICKET + 1), "\ud800")
    assert [await tickets.take(secret) for secret in strange] == [None] * len(strange)
    assert [await tickets.take(first) for _ in range(2)] == [TICKET, None]
    assert await tickets.take(other) == TICKET


async def test_a_ticket_ends_after_a_minute(store: Store) -> None:
    tickets = VoiceTickets(store)
    early, late = await tickets.issue(TICKET), await tickets.issue(TICKET)
    await elapse(TICKET_SECONDS - 1)
    assert await tickets.take(early) == TICKET
    await elapse(2)
    assert await tickets.take(late) is None


async def test_redis_knows_no_secret(store: Store) -> None:
    secret = await VoiceTickets(store).issue(TICKET)
    assert not [name async for names in store.pages("*") for name in names if secret in name]

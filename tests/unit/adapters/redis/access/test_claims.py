"""What time does to claims; tests/integration/redis/test_admissions.py has the rest, over real servers too."""

import pytest

from fleet.adapters.redis.access import claims as module
from fleet.adapters.redis.access.admissions import CLAIM_SECONDS, REFUSED_SECONDS, Admissions, BootstrapAsker
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.client.store import Store
from tests.support.virtual_time import elapse

MACS = [f"02:00:00:00:00:{number:02x}" for number in range(12)]
DAY = 24 * 3600


async def ask(store: Store, mac: str, client: str, address: str = "192.0.2.1") -> str:
    """Ask bootstrap as a client does; return the verdict."""
    decision = await Admissions(store).decide("first", BootstrapAsker(mac, client, address), {"kid": "k1"})
    if decision.claims:
        await Claims(store).note(mac, address)
    return decision.verdict


async def own(store: Store, mac: str) -> None:
    await Admissions(store).bind(mac, "owner")


async def test_a_claim_is_kept_for_days_after_its_client_asked_last(store: Store) -> None:
    await own(store, MACS[0])
    for _ in range(2):
        assert await ask(store, MACS[0], "another") != "admitted"
        await elapse(CLAIM_SECONDS - DAY)
    [claim] = await Claims(store).all()
    assert (claim.mac, claim.client, claim.count, claim.address) == (MACS[0], "another", 2, "192.0.2.1")
    await elapse(2 * DAY)
    assert await Claims(store).all() == []


async def test_one_address_has_a_share_of_all_claims(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CLAIMED", 20)
    for mac in MACS:
        await own(store, mac)
        await ask(store, mac, "attacker", "198.51.100.7")
    await ask(store, MACS[0], "erased", "192.0.2.1")
    kept = await Claims(store).all()
    assert len([claim for claim in kept if claim.client == "attacker"]) == 20 // module.SHARE
    assert [claim.client for claim in kept if claim.mac == MACS[0]] == ["erased"]


async def test_who_was_refused_stays_so_for_a_month(store: Store) -> None:
    await own(store, MACS[0])
    await ask(store, MACS[0], "another")
    [claim] = await Claims(store).of(MACS[0])
    await Claims(store).refuse(claim)
    assert await ask(store, MACS[0], "another") == "refused"
    assert await Claims(store).all() == []
    await elapse(REFUSED_SECONDS - DAY)
    assert REFUSED_SECONDS > 20 * DAY and await ask(store, MACS[0], "another") == "refused"
    await elapse(2 * DAY)
    assert await ask(store, MACS[0], "another") == "asked"

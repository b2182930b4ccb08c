"""Whose a MAC is: what is pinned, for how long, and which generation of passwords it needs."""

import pytest

from fleet.core.standing import Policy
from fleet.store import admissions
from fleet.store.admissions import YOUNG_SECONDS, Admissions, Asker, Decision
from fleet.store.claims import Claims
from fleet.store.connect import Store
from fleet.store.devices import Devices
from fleet.store.owner import Owner
from fleet.store.renewals import Pace, Renewals
from fleet.store.roster import Roster

OWNER, OTHER = "7b8f1c44-0000-4000-8000-000000000001", "7b8f1c44-0000-4000-8000-000000000002"


async def ask(store: Store, mac: str, client: str = OWNER, policy: Policy = "first") -> Decision:
    return await Admissions(store).decide(policy, Asker(mac, client, "192.0.2.7"), {"kid": "k1", "board": "b"})


async def connect(store: Store, owner: Owner, mac: str, epoch: int, generation: int, policy: str = "first") -> None:
    user = f"device.k1.{policy}.{generation}"
    await Devices(store).appear(mac, online=True, epoch=epoch, owner=owner, user=user)


async def due(store: Store, owner: Owner, mac: str) -> list[tuple[str, int]]:
    return (await Renewals(store).look(owner, store.keys.shard(mac), Pace(True, 0))).due


async def test_the_first_owns_a_mac_and_another_stands_among_the_claims(store: Store, mac: str) -> None:
    first, other = await ask(store, mac), await ask(store, mac, OTHER)
    assert (first.verdict, other.verdict) == ("admitted", "asked")
    assert first.generation >= 1 and other.generation == 0 and other.claims
    assert (await ask(store, mac)).generation == first.generation
    standing = await Admissions(store).read(mac)
    assert (standing.how, standing.client, standing.others) == ("first", OWNER, 1)
    [claim] = await Claims(store).of(mac)
    assert (claim.client, claim.address, claim.count) == (OTHER, "192.0.2.7", 1)


async def test_a_mac_that_never_connected_lives_an_hour_and_a_connection_makes_it_last(
    store: Store, owner: Owner, mac: str
) -> None:
    given = (await ask(store, mac)).generation
    names = store.keys
    for key in (admissions.admission_key(store, mac), names.device(mac)):
        assert 0 < await store.client.ttl(key) <= YOUNG_SECONDS
    await connect(store, owner, mac, 5, given)
    assert await store.client.ttl(admissions.admission_key(store, mac)) == -1
    assert await store.client.ttl(names.device(mac)) > YOUNG_SECONDS
    assert await store.client.zcard(names.young(names.shard(mac))) == 0
    [entry] = await Roster(store).entries()
    assert entry.connected and entry.given == given


@pytest.mark.parametrize("policy", ["open", "first"])
async def test_macs_that_never_connected_are_few_and_the_oldest_go(
    store: Store, owner: Owner, mac: str, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admissions, "MOST_YOUNG", 5 * store.keys.shards)
    shard = store.keys.shard(mac)
    macs = [name for n in range(4096) if store.keys.shard(name := f"0a:00:00:00:{n >> 8:02x}:{n & 255:02x}") == shard]
    await Admissions(store).bind(macs[0])
    crowded = [(await ask(store, name, policy=policy)).crowded_out for name in macs[:20]]
    assert sum(crowded) == 14, "the bound one is not among them"
    assert await store.client.zcard(store.keys.young(shard)) == 5
    left = {entry.device.mac for entry in await Roster(store).entries()}
    assert left == {macs[0], *macs[15:20]}
    pins = [name for name in macs[:20] if await store.client.exists(admissions.admission_key(store, name))]
    assert pins == ([macs[0]] if policy == "open" else [macs[0], *macs[15:20]])


async def test_who_was_connected_before_there_were_owners_is_kept_under_every_policy(
    store: Store, owner: Owner, mac: str
) -> None:
    for policy in ("first", "code", "closed"):
        await store.client.delete(admissions.admission_key(store, mac))
        await Devices(store).appear(mac, online=True, epoch=7, owner=owner)
        assert (await ask(store, mac, policy=policy)).verdict == "admitted"
        assert (await Admissions(store).read(mac)).how == "kept"
        assert (await ask(store, mac, OTHER, policy)).verdict == ("refused" if policy == "closed" else "asked")


async def test_who_is_unbound_has_to_be_activated_again(store: Store, owner: Owner, mac: str) -> None:
    given = (await ask(store, mac)).generation
    await connect(store, owner, mac, 5, given)
    had, required = await Admissions(store).unbind(mac)
    assert had and required > given
    for policy, verdict in (("first", "asked"), ("code", "asked"), ("closed", "refused"), ("open", "admitted")):
        assert (await ask(store, mac, policy=policy)).verdict == verdict
    assert await Admissions(store).bind(mac, OWNER) is None
    assert (await ask(store, mac)).generation > required


async def test_an_owner_that_changes_raises_the_generation_and_the_same_one_does_not(store: Store, mac: str) -> None:
    given = (await ask(store, mac)).generation
    assert await Admissions(store).bind(mac, OWNER) is None
    assert (await ask(store, mac)).generation == given
    raised = await Admissions(store).bind(mac, OTHER, until=4_000_000_000)
    assert raised is not None and raised > given
    standing = await Admissions(store).read(mac)
    assert (standing.client, standing.due, standing.how) == (OTHER, 4_000_000_000, "code")
    assert (await ask(store, mac, OTHER)).generation == raised
    await Admissions(store).renew(mac, 4_100_000_000)
    assert (await Admissions(store).read(mac)).due == 4_000_000_000, "what was promised for an earlier one stays"


async def test_an_earlier_password_is_due_when_the_new_one_has_connected(store: Store, owner: Owner, mac: str) -> None:
    shard, renewals = store.keys.shard(mac), Renewals(store)
    given = (await ask(store, mac)).generation
    await connect(store, owner, mac, 5, given)
    assert await due(store, owner, mac) == [(mac, 1)], "what proves nothing counts no longer"
    await renewals.settle(owner, shard, mac, 1)
    raised = await Admissions(store).renew(mac, 4_000_000_000)
    await connect(store, owner, mac, 6, given)
    assert await due(store, owner, mac) == []
    await connect(store, owner, mac, 7, raised)
    assert await due(store, owner, mac) == [(mac, raised)]
    await renewals.settle(owner, shard, mac, raised)
    assert await due(store, owner, mac) == []
    assert (await Admissions(store).read(mac)).due == 0


async def test_a_password_of_a_pin_that_expired_is_refused_when_it_comes(store: Store, owner: Owner, mac: str) -> None:
    key = admissions.admission_key(store, mac)
    early = (await ask(store, mac, OTHER)).generation
    await store.client.delete(key, store.keys.device(mac))
    # An hour later, by the clock that generations follow.
    await store.client.hset(key, "gen", str(early + YOUNG_SECONDS))
    given = (await ask(store, mac)).generation
    assert given > early
    await connect(store, owner, mac, 5, early)
    assert (mac, given) in await due(store, owner, mac)


async def test_idle_devices_with_an_old_password_are_asked_and_others_are_not(
    store: Store, owner: Owner, mac: str
) -> None:
    shard, renewals, names = store.keys.shard(mac), Renewals(store), store.keys

    async def asked() -> list[str]:
        await store.client.zadd(names.old(shard), {mac: 0}, xx=True)
        return (await renewals.look(owner, shard, Pace(True, 5))).ask

    given = (await ask(store, mac)).generation
    await connect(store, owner, mac, 5, given)
    await Admissions(store).renew(mac, 4_000_000_000)
    assert await asked() == [mac]
    assert (await renewals.look(owner, shard, Pace(True, 5))).ask == [], "not again within minutes"
    await store.client.hset(names.device(mac), "sid", "abc")
    assert await asked() == [], "never in a conversation"
    await store.client.hdel(names.device(mac), "sid")
    await Devices(store).appear(mac, online=False, epoch=5, owner=owner)
    assert await asked() == []
    await connect(store, owner, mac, 6, (await ask(store, mac)).generation)
    assert await asked() == []
    assert await store.client.zcard(names.old(shard)) == 0


async def test_devices_are_sorted_once_after_a_policy_began(store: Store, owner: Owner, mac: str) -> None:
    shard, renewals, names = store.keys.shard(mac), Renewals(store), store.keys
    await Admissions(store).decide("open", Asker(mac, ""), {"kid": "k1"})
    await connect(store, owner, mac, 5, 0, "open")
    await renewals.look(owner, shard, Pace(False, 5))
    assert await store.client.zcard(names.old(shard)) == 0, "under an open policy all are as good"
    assert await renewals.left(1000) is None
    for number in range(names.shards):
        lease = owner
        if number != shard:
            lease = Owner("other", "1")
            await store.client.hset(names.own(number), mapping={"w": "other", "f": "1"})
        while not await renewals.scan(lease, number, 1000):
            pass
    assert await renewals.left(1000) == 1
    assert await store.client.zscore(names.old(shard), mac) is not None


async def test_a_claim_is_refused_for_a_time_and_few_are_kept_of_one_mac(store: Store, mac: str) -> None:
    await ask(store, mac)
    for number in range(9):
        assert (await ask(store, mac, f"client-{number}")).verdict == "asked"
    found = await Claims(store).of(mac)
    assert len(found) == admissions.CLAIMS_EACH
    refused = found[0]
    await Claims(store).refuse(refused)
    assert (await ask(store, mac, refused.client)).verdict == "refused"
    assert refused.client not in {claim.client for claim in await Claims(store).of(mac)}
    assert (await ask(store, mac)).verdict == "admitted"


async def test_claims_are_few_over_all_devices(store: Store, mac: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.store.claims.MOST_CLAIMED", 3)
    macs = [f"0a:00:00:00:00:{number:02x}" for number in range(6)]
    dropped = 0
    for name in macs:
        await ask(store, name)
        await ask(store, name, OTHER)
        dropped += await Claims(store).note(name)
    assert dropped == 3
    assert {claim.mac for claim in await Claims(store).all()} == set(macs[3:])

"""Whose a MAC is: what is pinned, for how long, and which generation of passwords it needs."""

from dataclasses import replace

import pytest

from fleet.adapters.redis.access import admissions
from fleet.adapters.redis.access.admissions import YOUNG_SECONDS, Admissions, BootstrapAsker, Decision
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.access.renewals import RenewalPace, Renewals
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.registry import DeviceRegistry
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.admission import Policy
from fleet.ground.errors import Fenced

OWNER, OTHER = "7b8f1c44-0000-4000-8000-000000000001", "7b8f1c44-0000-4000-8000-000000000002"


async def ask(
    store: Store, mac: str, client: str = OWNER, policy: Policy = "first", address: str = "192.0.2.7"
) -> Decision:
    return await Admissions(store).decide(policy, BootstrapAsker(mac, client, address), {"kid": "k1", "board": "b"})


async def connect(store: Store, owner: Owner, mac: str, epoch: int, generation: int, policy: str = "first") -> None:
    user = f"device.k1.{policy}.{generation}"
    await Devices(store).appear(mac, online=True, epoch=epoch, owner=owner, user=user)


async def due(store: Store, owner: Owner, mac: str) -> list[tuple[str, int]]:
    return (await Renewals(store).look(owner, store.keys.shard(mac), RenewalPace(True, 0))).due


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
    [entry] = await DeviceRegistry(store).entries()
    assert entry.connected and entry.given == given


async def test_a_user_name_counts_for_its_own_connection_only(store: Store, owner: Owner, mac: str) -> None:
    first = (await ask(store, mac)).generation
    await connect(store, owner, mac, 5, first)
    await Admissions(store).renew(mac, 4_000_000_000)
    assert (await ask(store, mac)).generation > first
    # The next connection comes through a broker that does not report the user name.
    await Devices(store).appear(mac, online=True, epoch=6, owner=owner)
    assert await store.client.zscore(store.keys.old(store.keys.shard(mac)), mac) is None, "its password is the new one"


def of_one_shard(store: Store, mac: str) -> list[str]:
    names = (f"0a:00:00:00:{n >> 8:02x}:{n & 255:02x}" for n in range(4096))
    return [name for name in names if store.keys.shard(name) == store.keys.shard(mac)]


async def test_macs_that_never_connected_are_few_and_each_keeps_its_hour(
    store: Store, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admissions, "MOST_YOUNG", 5 * store.keys.shards)
    macs = of_one_shard(store, mac)
    await Admissions(store).bind(macs[0])
    # Everybody has a tenth of the places, and at least one.
    got = [(await ask(store, name, address=f"192.0.2.{n}")).verdict for n, name in enumerate(macs[:8])]
    assert got == ["admitted"] * 6 + ["no place"] * 2, "the bound one needs no place"
    assert {entry.device.mac for entry in await DeviceRegistry(store).entries()} == set(macs[:6])
    assert not await store.client.exists(admissions.admission_key(store, macs[7]))
    assert (await ask(store, macs[3], OTHER, address="192.0.2.99")).verdict == "asked"
    assert (await ask(store, macs[3])).verdict == "admitted"


async def test_one_source_has_a_tenth_of_the_places_when_half_are_taken_and_gets_them_back(
    store: Store, owner: Owner, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admissions, "MOST_YOUNG", 20 * store.keys.shards)
    one, two, three, four, five, *others = of_one_shard(store, mac)[:13]
    for number, name in enumerate(others):
        assert (await ask(store, name, address=f"192.0.2.{100 + number}")).verdict == "admitted"
    first, second = await ask(store, one), await ask(store, two)
    assert (first.verdict, second.verdict) == ("admitted", "admitted")
    assert (await ask(store, three)).verdict == "no place for its address"
    assert (await ask(store, three, address="198.51.100.1")).verdict == "admitted"
    await Devices(store).appear(one, online=True, epoch=5, user=f"device.k1.first.{first.generation}")
    assert (await ask(store, four)).verdict == "admitted", "one connected"
    assert (await ask(store, five)).verdict == "no place for its address"
    await Admissions(store).bind(two, OWNER)
    assert (await ask(store, five)).verdict == "admitted", "another was bound"
    left = await store.client.zrange(store.keys.young(store.keys.shard(mac)), 0, -1)
    assert set(left) == {three, four, five, *others}


async def test_the_hour_of_a_pin_begins_anew_when_its_owner_asks(store: Store, mac: str) -> None:
    await ask(store, mac)
    young = store.keys.young(store.keys.shard(mac))
    lives = (admissions.admission_key(store, mac), store.keys.device(mac))

    async def age() -> None:
        for key in lives:
            await store.client.expire(key, 60)
        for key in (young, f"{young}:192.0.2.7"):
            await store.client.zincrby(key, 60 - YOUNG_SECONDS, mac)

    await age()
    first = await store.client.zscore(young, mac)
    await ask(store, mac, OTHER)
    assert max([await store.client.ttl(key) for key in lives]) <= 60, "a stranger prolongs nothing"
    assert (await ask(store, mac, address="198.51.100.1")).verdict == "admitted"
    assert min([await store.client.ttl(key) for key in lives]) > 60
    for key in (young, f"{young}:192.0.2.7"):
        assert await store.client.zscore(key, mac) > first
    assert await store.client.ttl(f"{young}:192.0.2.7") > 60


async def test_places_come_back_after_an_hour(store: Store, mac: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admissions, "MOST_YOUNG", store.keys.shards)
    one, two = of_one_shard(store, mac)[:2]
    assert (await ask(store, one)).verdict == "admitted"
    assert (await ask(store, two)).verdict == "no place for its address"
    young = store.keys.young(store.keys.shard(mac))
    for key in (young, f"{young}:192.0.2.7"):
        assert await store.client.zincrby(key, -YOUNG_SECONDS - 1, one)
    await store.client.delete(admissions.admission_key(store, one), store.keys.device(one))
    assert (await ask(store, two)).verdict == "admitted"
    assert await store.client.zrange(young, 0, -1) == [two]
    assert 0 < await store.client.ttl(f"{young}:192.0.2.7") <= YOUNG_SECONDS


async def test_under_an_open_policy_all_are_served_and_the_oldest_without_a_pin_give_way(
    store: Store, mac: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admissions, "MOST_YOUNG", 5 * store.keys.shards)
    pinned, *macs = of_one_shard(store, mac)[:20]
    assert (await ask(store, pinned, address="192.0.2.1")).verdict == "admitted"
    got = [await ask(store, name, policy="open", address=f"192.0.2.{n + 2}") for n, name in enumerate(macs)]
    assert {one.verdict for one in got} == {"admitted"}
    assert await store.client.zcard(store.keys.young(store.keys.shard(mac))) == 5
    left = {entry.device.mac for entry in await DeviceRegistry(store).entries()}
    assert pinned in left and len(left) == 5
    assert (await ask(store, pinned, OTHER)).verdict == "asked"


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
    await renewals.settle(owner, shard, [(mac, 1)])
    raised = await Admissions(store).renew(mac, 4_000_000_000)
    await connect(store, owner, mac, 6, given)
    assert await due(store, owner, mac) == []
    await connect(store, owner, mac, 7, raised)
    assert await due(store, owner, mac) == [(mac, raised)]
    await renewals.settle(owner, shard, [(mac, raised)])
    assert await due(store, owner, mac) == []
    assert (await Admissions(store).read(mac)).due == 0


async def test_of_several_devices_only_the_required_generations_are_settled(
    store: Store, owner: Owner, mac: str
) -> None:
    shard, renewals = store.keys.shard(mac), Renewals(store)
    macs = [mac, *of_one_shard(store, mac)[:2]]
    raised: dict[str, int] = {}
    for at, one in enumerate(macs):
        given = (await ask(store, one)).generation
        await connect(store, owner, one, 5, given)
        raised[one] = await Admissions(store).renew(one, 4_000_000_000)
        await connect(store, owner, one, 6, raised[one])
        if at == 1:
            await Admissions(store).renew(one, 4_000_000_000)
    assert dict(await due(store, owner, mac)) == {one: raised[one] for one in (macs[0], macs[2])}
    await renewals.settle(owner, shard, list(raised.items()))
    assert await due(store, owner, mac) == []
    assert [(await Admissions(store).read(one)).due for one in macs] == [0, 4_000_000_000, 0]
    with pytest.raises(Fenced):
        await renewals.settle(replace(owner, fence="0"), shard, [(mac, raised[mac])])


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
        return (await renewals.look(owner, shard, RenewalPace(True, 5))).ask

    given = (await ask(store, mac)).generation
    await connect(store, owner, mac, 5, given)
    await Admissions(store).renew(mac, 4_000_000_000)
    assert await asked() == [mac]
    assert (await renewals.look(owner, shard, RenewalPace(True, 5))).ask == [], "not again within minutes"
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
    await Admissions(store).decide("open", BootstrapAsker(mac, ""), {"kid": "k1"})
    await connect(store, owner, mac, 5, 0, "open")
    await renewals.look(owner, shard, RenewalPace(False, 5))
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


async def test_a_claim_is_refused_for_a_time(store: Store, mac: str) -> None:
    await ask(store, mac)
    for number in range(3):
        assert (await claim(store, mac, f"client-{number}", f"192.0.2.{number}")).verdict == "asked"
    refused = (await Claims(store).of(mac))[0]
    await Claims(store).refuse(refused)
    assert (await ask(store, mac, refused.client)).verdict == "refused"
    assert refused.client not in {one.client for one in await Claims(store).of(mac)}
    assert (await ask(store, mac)).verdict == "admitted"


async def claim(store: Store, mac: str, client: str, address: str) -> Decision:
    """Ask as the api does."""
    decided = await ask(store, mac, client, address=address)
    assert decided.claims
    await Claims(store).note(mac, address)
    return decided


async def clients(store: Store, mac: str) -> set[str]:
    return {one.client for one in await Claims(store).of(mac)}


async def test_a_source_replaces_its_own_claims_of_a_mac_and_nobody_elses(store: Store, mac: str) -> None:
    await ask(store, mac)
    await claim(store, mac, "the-real-one", "203.0.113.5")
    for number in range(20):
        await claim(store, mac, f"stranger-{number}", "198.51.100.1")
    assert await clients(store, mac) == {"the-real-one", "stranger-18", "stranger-19"}
    # Nor does it gain by taking a claim along from address to address.
    for number in range(4):
        await claim(store, mac, f"moved-{number}", f"198.51.100.{number + 2}")
        await claim(store, mac, f"moved-{number}", "198.51.100.1")
    assert await clients(store, mac) == {"the-real-one", "moved-2", "moved-3"}
    for number in range(30):
        for which in range(2):
            await claim(store, mac, f"crowd-{number}-{which}", f"198.51.100.{number % 8 + 10}")
    found = await clients(store, mac)
    assert "the-real-one" in found and len(found) == admissions.CLAIMS_EACH


async def test_of_too_many_sources_the_one_that_asked_longest_ago_goes(store: Store, mac: str) -> None:
    await ask(store, mac)
    for number in range(admissions.CLAIMS_EACH):
        await claim(store, mac, f"client-{number}", f"198.51.100.{number}")
        at = f"{1000 + number}"
        await store.client.hset(store.keys.claims(mac), f"client-{number}", f"{at} {at} 1 198.51.100.{number}")
    await claim(store, mac, "client-0", "198.51.100.0")
    await claim(store, mac, "one-more", "203.0.113.5")
    gone = {f"client-{number}" for number in range(admissions.CLAIMS_EACH)} - await clients(store, mac)
    assert gone == {"client-1"}


async def test_claims_are_few_over_all_devices_and_one_source_has_a_tenth(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.adapters.redis.access.claims.MOST_CLAIMED", 40)
    macs = [f"0a:00:00:00:00:{number:02x}" for number in range(200)]
    for name in macs:
        await ask(store, name, address="")
    real = "192.0.2.1"
    await claim(store, macs[0], "the-real-one", real)
    for name in macs[:30]:
        await claim(store, name, OTHER, "198.51.100.1")
    listed = await Claims(store).all()
    assert [one.mac for one in listed if one.address == "198.51.100.1"] == macs[29:25:-1], "a tenth"
    assert [one.client for one in listed if one.address == real] == ["the-real-one"]
    for number, name in enumerate(macs[:150]):
        await claim(store, name, f"crowd-{number}", f"198.51.100.{number % 30 + 2}")
    listed = await Claims(store).all()
    assert len(listed) <= 40
    assert [one.mac for one in listed if one.address == real] == [macs[0]], "who holds most loses its oldest"
    kept = {name for name in macs if await store.client.exists(store.keys.claims(name))}
    assert kept == {one.mac for one in listed}


async def test_a_claim_that_is_settled_leaves_the_list(store: Store, mac: str) -> None:
    await ask(store, mac)
    await claim(store, mac, "one", "192.0.2.1")
    await claim(store, mac, "two", "192.0.2.2")
    await Admissions(store).bind(mac, "one")
    await Claims(store).settle(mac, "one")
    assert [one.client for one in await Claims(store).all()] == ["two"]
    await Claims(store).settle(mac, "two")
    assert await Claims(store).all() == []
    assert [key async for key in store.client.scan_iter("{claims}*")] == []

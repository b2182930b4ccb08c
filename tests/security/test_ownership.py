"""Whose device is it: strangers who name a MAC that is another's, over real HTTP."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from fleet.adapters.redis.access.admissions import Admissions, admission_key
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.client.store import Store
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import BODY, headers
from tests.support.attacked_api import ACTIVATE, NORMAL, OTA, AttackedApi, attacked_api
from tests.support.offered_firmware import offer_firmware

RACES = [10, pytest.param(100, marks=pytest.mark.slow)]
OWNER = "7b8f1c44-0000-4000-8000-000000000001"
YOUNG, INVENTED = 32, 150
POLICIES = ("first", "code", "closed")
_NO_PLACE = "bootstrap: no place for its address"


def mac(number: int) -> str:
    return f"0a:00:00:00:05:{number:02x}"


def client(number: int) -> str:
    return f"7b8f1c44-0000-4000-8000-0000000000{number:02x}"


async def has_password(site: AttackedApi, device: str, **changed: str) -> bool:
    answer = await site.boot(device, **changed)
    return answer.status_code == 200 and "mqtt" in answer.json()


async def race(site: AttackedApi, device: str) -> list[int]:
    """Let four Client-Ids ask at the same time; return which of them got the password."""
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(has_password(site, device, Client_Id=client(number))) for number in range(4)]
    return [number for number, task in enumerate(asked) if task.result()]


@pytest.mark.parametrize("races", RACES)
@pytest.mark.parametrize("policy", POLICIES)
async def test_of_four_that_race_for_a_mac_exactly_one_gets_the_password(
    store: Store, keys: CredentialKeys, policy: Any, races: int
) -> None:
    await Admissions(store).bind(NORMAL)
    async with attacked_api(store, keys, activation=policy) as site:
        for number in range(races):
            if policy != "first":
                await Admissions(store).bind(mac(number))
            winners = await race(site, mac(number))
            assert len(winners) == 1, f"race {number}: {winners}"
            again = [one for one in range(4) if await has_password(site, mac(number), Client_Id=client(one))]
            assert again == winners


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["", None])
async def test_a_visitor_without_client_id_is_refused_and_changes_nothing(
    store: Store, keys: CredentialKeys, policy: Any, name: str | None
) -> None:
    await Admissions(store).bind(NORMAL)
    async with attacked_api(store, keys, activation=policy) as site:
        await Admissions(store).bind(mac(1))
        sent = headers(Device_Id=mac(1), Client_Id=name or "")
        if name is None:
            del sent["Client-Id"]
        for path in ("/xiaozhi/ota/", ACTIVATE):
            answer = await site.client.post(path, headers=sent, content=b"{}")
            assert answer.status_code in (400, 403), answer.text
            assert "mqtt" not in answer.json()
        assert site.counts["no client id"] == 2
        assert await has_password(site, mac(1), Client_Id=OWNER)
        assert not await has_password(site, mac(1), Client_Id=client(9)), "the owner came first, and is pinned"


async def test_foreign_bootstraps_do_not_suppress_a_firmware_offer(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, activation="first") as site:
        await site.boot(mac(1))
        await offer_firmware(store, mac(1), "9.0.0")
        assert "firmware" in (await site.boot(mac(1))).json()
        for number in range(20):
            await site.boot(mac(1), Client_Id=client(number % 5 + 10))
        assert "firmware" in (await site.boot(mac(1))).json()
        for _ in range(3):
            last = await site.boot(mac(1))
        assert "firmware" not in last.json(), "its own are counted"


def of_shard(store: Store, like: str, most: int) -> list[str]:
    """Return invented MACs whose keys lie with those of a device: everybody can reckon which."""
    shard = store.keys.shard(like)
    names = (f"0e:00:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(65536))
    return [name for name in names if store.keys.shard(name) == shard][:most]


async def flood(site: AttackedApi, macs: Sequence[str], address: str) -> Counter[int]:
    """Ask with each of these MACs from one address; return how many got which status."""
    async with site.visitor(address) as stranger:
        sent = [await stranger.post(OTA, headers=headers(Device_Id=name), content=BODY) for name in macs]
    return Counter(answer.status_code for answer in sent)


async def test_nobody_pushes_out_a_device_that_has_not_connected_yet(
    store: Store, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.adapters.redis.access.admissions.MOST_YOUNG", 40 * store.keys.shards)
    await Admissions(store).bind(mac(2))
    async with attacked_api(store, keys, activation="first") as site:
        async with site.visitor("127.0.0.9") as home:
            asked = await home.post(OTA, headers=headers(Device_Id=mac(1), Client_Id=OWNER), content=BODY)
        assert "mqtt" in asked.json()
        macs = of_shard(store, mac(1), 200)
        assert await flood(site, macs[:50], "127.0.0.3") == {200: 19, 429: 31}, "one address has half of the places"
        assert site.counts["bootstrap: no place for its address"] == 31
        for number in range(4, 16):
            last = await flood(site, macs[number * 10 : number * 10 + 10], f"127.0.1.{number}")
        assert last == {503: 10}, "all places are taken"
        refused = await site.boot(macs[-1])
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "60")
        assert site.counts["bootstrap: no place"] > 10
        assert not await has_password(site, mac(1), Client_Id=client(9)), "the pin of the owner holds"
        assert await has_password(site, mac(1), Client_Id=OWNER)
        assert await has_password(site, mac(2), Client_Id=OWNER), "who was bound before needs no place"


async def test_a_pin_lasts_an_hour_after_its_owner_asked_last(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, activation="first") as site:
        assert await has_password(site, mac(1), Client_Id=OWNER)
        pin = admission_key(store, mac(1))
        await store.client.expire(pin, 60)
        assert not await has_password(site, mac(1), Client_Id=client(9))
        assert await store.client.ttl(pin) <= 60
        assert await has_password(site, mac(1), Client_Id=OWNER)
        assert 3000 < await store.client.ttl(pin) <= 3600


@pytest.mark.parametrize("policy", ["open", "first"])
async def test_who_invents_macs_fills_nothing(
    store: Store, keys: CredentialKeys, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.adapters.redis.access.admissions.MOST_YOUNG", YOUNG)
    async with attacked_api(store, keys, activation=policy) as site:
        before = await store.client.dbsize()
        answers = [await site.boot(f"0e:00:00:00:00:{number:02x}") for number in range(INVENTED)]
        grown = await store.client.dbsize() - before
        assert grown <= 2 * YOUNG + 3 * 16 + 1, (
            "records and pins, three lists for each shard, and one of who was refused"
        )
        served = sum(answer.status_code == 200 for answer in answers)
        assert served == INVENTED if policy == "open" else served <= YOUNG
        assert sum(site.counts[what] for what in ("devices: crowded out", _NO_PLACE)) >= INVENTED - 2 * YOUNG
        for key in [key async for key in store.client.scan_iter("f:*:[do]:*")]:
            assert 0 < await store.client.ttl(key) <= 3600


async def test_a_stranger_hides_no_claim_of_another(
    store: Store, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.adapters.redis.access.claims.MOST_CLAIMED", 20)
    async with attacked_api(store, keys, activation="first") as site:
        for number in range(40):
            await Admissions(store).bind(mac(number), OWNER)
        async with site.visitor("127.0.0.9") as home:
            sent = headers(Device_Id=mac(1), Client_Id="the-real-one")
            assert "activation" in (await home.post(OTA, headers=sent, content=BODY)).json()
        for number in range(40):
            for which in range(3):
                await site.boot(mac(number), Client_Id=client(which + 20))
                await site.boot(mac(1), Client_Id=client(number * 3 + which + 30))
        listed = await Claims(store).all()
        assert [(one.mac, one.client) for one in listed if one.address == "127.0.0.9"] == [(mac(1), "the-real-one")]
        assert len({one.mac for one in listed if one.address == "127.0.0.1"}) == 2, "a tenth"


async def test_a_stranger_leaves_few_claims_and_the_owner_is_served(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, activation="first") as site:
        assert await has_password(site, mac(1), Client_Id=OWNER)
        for number in range(40):
            assert not await has_password(site, mac(1), Client_Id=client(number + 20))
        assert len(await Claims(store).of(mac(1))) == 2
        assert site.counts["bootstrap: another owner"] == 40
        assert await has_password(site, mac(1), Client_Id=OWNER)
        assert (await Admissions(store).read(mac(1))).others == 40

"""Who asks the api too often: floods, invented devices, borrowed names, guesses, stolen tokens."""

import asyncio
import secrets
from datetime import UTC, datetime

import httpx2
import pytest

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.client.store import Store
from fleet.core.rates import Rate
from fleet.wire import camera
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import BODY, headers
from tests.support.attacked_api import ACTIVATE, NORMAL, OTA, AttackedApi, attacked_api

VICTIM = "0a:00:00:00:00:02"
SLOW = 0.001
"""Tokens a second: none comes back while a test runs, however long that takes."""
FROM_HOME, FROM_ELSEWHERE = {"X_Forwarded_For": "198.51.100.7"}, {"X_Forwarded_For": "203.0.113.66"}


def invented(number: int) -> str:
    raw = (number + (0x0E << 40)).to_bytes(6)
    return ":".join(f"{byte:02x}" for byte in raw)


async def statuses(site: AttackedApi, macs: list[str], **changed: str) -> list[int]:
    slots = asyncio.Semaphore(50)

    async def boot(mac: str) -> int:
        async with slots:
            return (await site.boot(mac, **changed)).status_code

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(boot(mac)) for mac in macs]
    return [task.result() for task in asked]


async def test_a_site_that_boots_at_once_from_one_address_is_served(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys) as site:
        assert set(await statuses(site, [invented(number) for number in range(500)])) == {200}


async def test_a_device_that_floods_is_told_when_to_come_again_and_no_other_is(
    store: Store, keys: CredentialKeys
) -> None:
    async with attacked_api(store, keys, rate_device=f"{SLOW}/5") as site:
        answers = [await site.boot(VICTIM) for _ in range(12)]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 7
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 1 / SLOW
        assert answers[-1].json() == {"error": "too many requests of this device"}
        assert site.counts[f"{OTA} 429"] == site.counts["device: bootstrap"] == 7
        await site.serves()


async def test_an_address_that_invents_devices_is_refused(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, rate_address=f"{SLOW}/20") as site:
        got = await statuses(site, [invented(number) for number in range(60)], **FROM_ELSEWHERE)
        assert (got.count(200), got.count(429)) == (20, 40)
        assert site.counts["address: bootstrap"] == 40
        assert (await site.boot(VICTIM, **FROM_HOME)).status_code == 200


async def test_nobody_uses_up_what_a_device_may_ask_by_borrowing_its_mac(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, rate_device=f"{SLOW}/5") as site:
        assert 429 in await statuses(site, [VICTIM] * 20, **FROM_ELSEWHERE)
        assert (await site.boot(VICTIM, **FROM_HOME)).status_code == 200


async def test_a_forwarded_address_is_believed_of_nobody_but_a_proxy(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, rate_address=f"{SLOW}/20", trusted_proxies="192.0.2.1") as site:
        got = [
            (await site.boot(invented(number), X_Forwarded_For=f"198.51.100.{number}")).status_code
            for number in range(30)
        ]
        assert got == [200] * 20 + [429] * 10


async def test_an_ipv6_network_counts_as_one_address(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, rate_address=f"{SLOW}/20") as site:
        got = [
            (await site.boot(invented(number), X_Forwarded_For=f"2001:db8:0:7::{number:x}")).status_code
            for number in range(30)
        ]
        assert got.count(200) == 20
        assert (await site.boot(VICTIM, X_Forwarded_For="2001:db8:0:8::1")).status_code == 200


async def test_guessing_a_challenge_gets_nowhere_and_leaves_the_device_its_own(
    store: Store, keys: CredentialKeys
) -> None:
    async with attacked_api(store, keys, activation="code", rate_device=f"{SLOW}/30") as site:
        section = (await site.boot(VICTIM, **FROM_HOME)).json()["activation"]
        proof = {"algorithm": "hmac-sha256", "serial_number": "SN1", "hmac": ""}
        guesses = [
            await site.client.post(
                ACTIVATE,
                headers=headers(Device_Id=VICTIM, **FROM_ELSEWHERE),
                json=proof | {"challenge": secrets.token_hex(32)},
            )
            for _ in range(40)
        ]
        assert [answer.status_code for answer in guesses] == [403] * 30 + [429] * 10
        assert site.counts[f"{ACTIVATE} 403"] == site.counts["activation: wrong proof"] == 30
        assert site.counts["device: activation"] == 10
        again = await site.client.post(ACTIVATE, headers=headers(Device_Id=VICTIM, **FROM_HOME), json={})
        assert again.status_code == 202
        assert (await site.boot(VICTIM, **FROM_HOME)).json()["activation"] == section


async def test_one_address_cannot_take_the_codes_of_all(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, activation="code", rate_address=f"{SLOW}/50") as site:
        await statuses(site, [invented(number) for number in range(200)], **FROM_ELSEWHERE)
        taken = [key async for key in store.client.scan_iter("act:*")]
        assert len(taken) <= 52
        assert await Activations(store).claim("not a code") is None


async def test_one_address_invents_few_devices_that_show_codes(
    store: Store, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.roles.api.throttle.INVITATIONS", Rate(SLOW, 5))
    async with attacked_api(store, keys, activation="code") as site:
        got = await statuses(site, [invented(number) for number in range(20)], **FROM_ELSEWHERE)
        assert (got.count(200), got.count(429)) == (5, 15)
        assert site.counts["address: invitation"] == 15
        assert (await site.boot(VICTIM, **FROM_HOME)).status_code == 200


async def test_a_stolen_token_is_good_for_a_few_photos_of_that_device_only(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, rate_photos=f"{SLOW}/3") as site:
        now = datetime.now(UTC).timestamp()
        stolen, own = camera.issue(keys, VICTIM, now), camera.issue(keys, NORMAL, now)

        async def upload(mac: str, token: str) -> httpx2.Response:
            sent = {"Device-Id": mac, "Authorization": f"Bearer {token}"}
            files = {"file": ("camera.jpg", b"\xff\xd8\xff" + bytes(5000), "image/jpeg")}
            return await site.client.post("/vision/explain", headers=sent, files=files, data={"question": "What?"})

        assert (await upload(NORMAL, stolen)).status_code == 401
        got = [await upload(VICTIM, stolen) for _ in range(6)]
        assert [answer.status_code for answer in got] == [200] * 3 + [429] * 3
        assert int(got[-1].headers["Retry-After"]) >= 1
        assert got[-1].json()["success"] is False
        assert (await upload(NORMAL, own)).status_code == 200
        assert site.counts["/vision/explain 429"] == site.counts["device: photo"] == 3
        assert site.counts["/vision/explain 401"] == site.counts["photo: token"] == 1


async def test_tokens_cannot_be_guessed_fast(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys, rate_address=f"{SLOW}/20") as site:
        got = []
        for _ in range(30):
            sent = {"Device-Id": VICTIM, "Authorization": f"Bearer 9999999999.new.{secrets.token_urlsafe(32)}"}
            got.append((await site.client.post("/vision/explain", headers=sent, content=b"x")).status_code)
        assert got == [401] * 20 + [429] * 10
        assert (site.counts["photo: token"], site.counts["address: photo"]) == (20, 10)


async def test_a_second_device_id_changes_nobody_elses_credentials(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys) as site:
        twice = [("Device-Id", VICTIM), ("Device-Id", NORMAL), ("Client-Id", "x")]
        answer = (await site.client.post(OTA, headers=twice, content=BODY)).json()["mqtt"]
        login = (answer["client_id"], answer["username"], answer["password"])
        assert keys.verify(*login) == "device"
        assert login[0] == VICTIM
        assert keys.verify(NORMAL, login[1], login[2]) is None


async def test_what_is_asked_for_does_not_grow_the_counters(store: Store, keys: CredentialKeys) -> None:
    async with attacked_api(store, keys) as site:
        for number in range(50):
            assert (await site.client.get(f"/nothing/{number}")).status_code == 404
        assert dict(site.counts) == {"elsewhere 404": 50}

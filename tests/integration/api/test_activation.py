"""Activation over real HTTP and a real Redis."""

import hashlib
import hmac
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fleet.adapters.redis.access.activations import PENDING_SECONDS, Activations
from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.core.admission import Policy
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import BODY, CLIENT, MAC, api_client, headers

OTA, ACTIVATE = "/xiaozhi/ota/", "/xiaozhi/ota/activate"
SERIAL, KEY = "SN-0001", bytes(range(32))
STRANGER = "7b8f1c44-0000-4000-8000-00000000ffff"
V2 = headers(Activation_Version="2", Serial_Number=SERIAL)


@pytest.fixture
def serials(tmp_path: Path) -> Path:
    path = tmp_path / "serials"
    path.write_text(f"# the first ones\n{SERIAL} {KEY.hex()}\nSN-0002 {bytes(32).hex()} 02:00:00:00:00:02\n")
    return path


@pytest.fixture
async def client(store: Store, keys: CredentialKeys, serials: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with api_client(store, keys, activation="code", serials_file=serials) as client:
        yield client


@pytest.fixture
async def closed(store: Store, keys: CredentialKeys, serials: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with api_client(store, keys, activation="closed", serials_file=serials) as client:
        yield client


async def boot(client: httpx2.AsyncClient, sent: dict[str, str] | None = None) -> dict[str, Any]:
    answer = await client.post(OTA, headers=sent or headers(), content=BODY)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def proof(challenge: str, key: bytes = KEY, serial: str = SERIAL) -> dict[str, str]:
    signed = hmac.new(key, challenge.encode(), hashlib.sha256).hexdigest()
    return {"algorithm": "hmac-sha256", "serial_number": serial, "challenge": challenge, "hmac": signed}


async def enter(store: Store, code: str) -> None:
    """Do what the operator does who enters a code."""
    found = await Activations(store).claim(code)
    assert found is not None
    await Admissions(store).bind(*found)


async def test_an_unbound_device_gets_a_code_and_no_credentials(client: httpx2.AsyncClient) -> None:
    answer = await boot(client)
    activation = answer["activation"]
    assert activation["code"].isdigit() and len(activation["code"]) == 6
    assert activation["code"] in activation["message"]
    assert len(activation["challenge"]) == 64
    assert "mqtt" not in answer and "server_time" in answer


async def test_a_code_binds_the_device_that_shows_it(client: httpx2.AsyncClient, store: Store) -> None:
    activation = (await boot(client))["activation"]
    assert (await client.post(ACTIVATE, headers=headers(), content=b"{}")).status_code == 202
    await enter(store, activation["code"])
    assert (await client.post(ACTIVATE, headers=headers(), content=b"{}")).status_code == 200
    bound = await boot(client)
    assert "activation" not in bound and bound["mqtt"]["client_id"] == MAC


async def test_asking_again_gives_the_same_code(client: httpx2.AsyncClient) -> None:
    first, second = (await boot(client))["activation"], (await boot(client))["activation"]
    assert first == second
    for _ in range(20):
        assert (await client.post(ACTIVATE, headers=headers(), content=b"{}")).status_code == 202
    assert (await boot(client))["activation"] == first


async def test_who_borrows_a_bound_mac_gets_nothing(client: httpx2.AsyncClient, store: Store) -> None:
    await enter(store, (await boot(client))["activation"]["code"])
    thief = headers(Client_Id=STRANGER)
    stolen = await boot(client, thief)
    assert "mqtt" not in stolen and stolen["activation"]["code"]
    assert (await client.post(ACTIVATE, headers=thief, content=b"{}")).status_code == 202
    assert "mqtt" in await boot(client), "the device itself is not disturbed"


async def test_whoever_asks_for_the_same_mac_gets_another_code(client: httpx2.AsyncClient, store: Store) -> None:
    mine, foreign = await boot(client), await boot(client, headers(Client_Id=STRANGER))
    assert mine["activation"]["code"] != foreign["activation"]["code"]
    await enter(store, mine["activation"]["code"])
    assert "mqtt" in await boot(client)
    assert "mqtt" not in await boot(client, headers(Client_Id=STRANGER))


async def test_a_code_works_once(client: httpx2.AsyncClient, store: Store) -> None:
    code = (await boot(client))["activation"]["code"]
    await enter(store, code)
    assert await Activations(store).claim(code) is None
    assert await Activations(store).claim("nonsense") is None


async def test_a_wrong_proof_is_refused_and_a_right_one_waits_for_the_code(
    client: httpx2.AsyncClient, store: Store
) -> None:
    activation = (await boot(client, V2))["activation"]
    right, wrong = proof(activation["challenge"]), proof(activation["challenge"], bytes(32))
    assert (await client.post(ACTIVATE, headers=V2, json=wrong)).status_code == 403
    assert (await client.post(ACTIVATE, headers=V2, json={**right, "hmac": ""})).status_code == 403
    assert (await client.post(ACTIVATE, headers=V2, content=b"{}")).status_code == 403
    assert (await client.post(ACTIVATE, headers=V2, json=right)).status_code == 202
    await enter(store, activation["code"])
    assert (await client.post(ACTIVATE, headers=V2, json=wrong)).status_code == 403
    assert (await client.post(ACTIVATE, headers=V2, json=right)).status_code == 200


async def test_both_shapes_of_the_body_and_both_readings_of_the_key_count(
    client: httpx2.AsyncClient, store: Store
) -> None:
    activation = (await boot(client, V2))["activation"]
    await enter(store, activation["code"])
    for key in (KEY, KEY.hex().encode()):
        sent = proof(activation["challenge"], key)
        assert (await client.post(ACTIVATE, headers=V2, json=sent)).status_code == 200
        assert (await client.post(ACTIVATE, headers=V2, json={"Payload": sent})).status_code == 200


async def test_another_devices_challenge_is_refused(client: httpx2.AsyncClient) -> None:
    other = headers(Device_Id="02:00:00:00:00:07")
    foreign = (await boot(client, other))["activation"]["challenge"]
    await boot(client, V2)
    for challenge in (foreign, "", "é" * 64):
        assert (await client.post(ACTIVATE, headers=V2, json=proof(challenge))).status_code == 403


async def expire(store: Store, seconds: int) -> None:
    """Let so much of the time pass for which codes and challenges are good."""
    for pattern in ("act:*", "f:*act:*"):
        async for key in store.client.scan_iter(pattern):
            await store.client.expire(key, await store.client.ttl(key) - seconds)


async def test_an_expired_challenge_and_code_are_worth_nothing(client: httpx2.AsyncClient, store: Store) -> None:
    activation = (await boot(client, V2))["activation"]
    await expire(store, PENDING_SECONDS + 1)
    assert (await client.post(ACTIVATE, headers=V2, json=proof(activation["challenge"]))).status_code == 403
    assert await Activations(store).claim(activation["code"]) is None
    fresh = (await boot(client, V2))["activation"]
    assert fresh["challenge"] != activation["challenge"]
    assert (await client.post(ACTIVATE, headers=V2, json=proof(activation["challenge"]))).status_code == 403
    assert (await client.post(ACTIVATE, headers=V2, json=proof(fresh["challenge"]))).status_code == 202


async def test_a_bound_device_cannot_use_an_expired_challenge(client: httpx2.AsyncClient, store: Store) -> None:
    activation = (await boot(client, V2))["activation"]
    await enter(store, activation["code"])
    await expire(store, PENDING_SECONDS + 1)
    assert (await client.post(ACTIVATE, headers=V2, json=proof(activation["challenge"]))).status_code == 403
    assert "mqtt" in await boot(client, V2), "what was bound stays bound"


async def test_a_code_that_is_shown_again_lives_on(client: httpx2.AsyncClient, store: Store) -> None:
    """Firmware asks bootstrap again each half minute, so an operator may take an hour."""
    first = (await boot(client))["activation"]
    for _ in range(4):
        await expire(store, PENDING_SECONDS - 240)
        assert (await boot(client))["activation"] == first
    await enter(store, first["code"])
    assert "mqtt" in await boot(client)


async def test_an_unknown_serial_number_proves_nothing_but_may_wait(client: httpx2.AsyncClient) -> None:
    sent = headers(Activation_Version="2", Serial_Number="SN-9")
    challenge = (await boot(client, sent))["activation"]["challenge"]
    answer = await client.post(ACTIVATE, headers=sent, json=proof(challenge, serial="SN-9"))
    assert answer.status_code == 202


async def test_a_closed_list_refuses_who_is_not_on_it(closed: httpx2.AsyncClient, store: Store) -> None:
    assert (await closed.post(OTA, headers=headers(), content=BODY)).status_code == 403
    await Admissions(store).bind(MAC)
    assert "mqtt" in await boot(closed)
    assert (await Admissions(store).read(MAC)).client == CLIENT
    stolen = await closed.post(OTA, headers=headers(Client_Id=STRANGER), content=BODY)
    assert stolen.status_code == 403


async def test_a_listed_serial_number_admits_itself(closed: httpx2.AsyncClient) -> None:
    activation = (await boot(closed, V2))["activation"]
    assert "code" not in activation
    assert (await closed.post(ACTIVATE, headers=V2, json=proof(activation["challenge"]))).status_code == 200
    assert "mqtt" in await boot(closed, V2)


async def test_a_serial_number_with_a_mac_is_worth_nothing_for_another_one(closed: httpx2.AsyncClient) -> None:
    sent = headers(Activation_Version="2", Serial_Number="SN-0002")
    challenge = (await boot(closed, sent))["activation"]["challenge"]
    foreign = proof(challenge, bytes(32), "SN-0002")
    assert (await closed.post(ACTIVATE, headers=sent, json=foreign)).status_code == 403
    own = headers(Activation_Version="2", Serial_Number="SN-0002", Device_Id="02:00:00:00:00:02")
    challenge = (await boot(closed, own))["activation"]["challenge"]
    assert (await closed.post(ACTIVATE, headers=own, json=proof(challenge, bytes(32), "SN-0002"))).status_code == 200


async def test_a_bound_serial_number_comes_back_after_its_memory_was_erased(
    client: httpx2.AsyncClient, store: Store
) -> None:
    await enter(store, (await boot(client, V2))["activation"]["code"])
    erased = headers(Activation_Version="2", Serial_Number=SERIAL, Client_Id=STRANGER)
    challenge = (await boot(client, erased))["activation"]["challenge"]
    assert (await client.post(ACTIVATE, headers=erased, json=proof(challenge))).status_code == 200
    assert "mqtt" in await boot(client, erased)


@pytest.mark.parametrize(("policy", "again"), [("first", False), ("code", False), ("closed", True)])
async def test_a_listed_serial_number_lifts_unbind_only_on_a_closed_list(
    store: Store, keys: CredentialKeys, serials: Path, policy: Policy, again: bool
) -> None:
    async with api_client(store, keys, activation=policy, serials_file=serials) as client:
        await Admissions(store).bind(headers()["Device-Id"], headers()["Client-Id"], SERIAL, how="key")
        assert "mqtt" in await boot(client, V2)
        await Admissions(store).unbind(headers()["Device-Id"])
        challenge = (await boot(client, V2))["activation"]["challenge"]
        answer = await client.post(ACTIVATE, headers=V2, json=proof(challenge))
        assert answer.status_code == (200 if again else 202)
        assert ("mqtt" in await boot(client, V2)) is again


async def test_everybody_is_bound_where_the_policy_is_open(store: Store, keys: CredentialKeys) -> None:
    async with api_client(store, keys, activation="open") as client:
        assert (await client.post(ACTIVATE, headers=headers(), content=b"{}")).status_code == 200
        assert (await client.post(ACTIVATE, content=b"{}")).status_code == 400


async def test_py_xiaozhi_is_told_to_start_again_and_then_gets_its_credentials(
    client: httpx2.AsyncClient, store: Store
) -> None:
    """It keeps its first answer: bootstrap is asked once, before the activation (src/activation/service.py)."""
    sent = headers(User_Agent="bread-compact-wifi/py-xiaozhi-2.1.1", Activation_Version="2.1.1")
    activation = (await boot(client, sent))["activation"]
    assert "start this program again" in activation["message"]
    # Its request to activate says another version, has no User-Agent of its own, and wraps the proof.
    asks = headers(Activation_Version="2")
    wrapped = {"Payload": proof(activation["challenge"], serial="SN-py")}
    assert (await client.post(ACTIVATE, headers=asks, json=wrapped)).status_code == 202
    await enter(store, activation["code"])
    assert (await client.post(ACTIVATE, headers=asks, json=wrapped)).status_code == 200
    assert "mqtt" in await boot(client, sent)


async def test_a_client_of_version_1_or_none_is_led_through_activation(
    client: httpx2.AsyncClient, store: Store
) -> None:
    for version, mac in (("1", "02:00:00:00:0a:01"), ("", "02:00:00:00:0a:02")):
        sent = headers(Device_Id=mac, Activation_Version=version)
        activation = (await boot(client, sent))["activation"]
        assert activation["code"] and activation["challenge"]
        assert (await client.post(ACTIVATE, headers=sent, content=b"{}")).status_code == 202
        await enter(store, activation["code"])
        assert (await client.post(ACTIVATE, headers=sent, content=b"{}")).status_code == 200
        assert "mqtt" in await boot(client, sent)

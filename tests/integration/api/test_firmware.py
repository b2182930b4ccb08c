"""Firmware offers and downloads over real HTTP and a real Redis."""

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.offers import Offers
from fleet.wire.firmware_offer import offer_name
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import BODY, MAC, api_client, headers
from tests.support.offered_firmware import image_of, offer_firmware, store_file

OTA = "/xiaozhi/ota/"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.bin").write_bytes(b"not for devices")
    return tmp_path / "firmware"


@pytest.fixture
async def client(store: Store, keys: CredentialKeys, folder: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with api_client(store, keys, firmware_dir=folder) as client:
        yield client


async def offered(client: httpx2.AsyncClient, agent: str = "board/2.4.2", body: bytes = BODY) -> dict[str, Any] | None:
    answer = await client.post(OTA, headers=headers(User_Agent=agent), content=body)
    assert answer.status_code == 200
    found = answer.json().get("firmware")
    return dict(found) if found else None


async def events(store: Store) -> list[tuple[str, dict[str, Any]]]:
    found = await store.ask(store.client.xrange(store.keys.events(store.keys.shard(MAC))))
    return [(fields["k"], json.loads(fields["d"])) for _, fields in found]


async def want_events(store: Store) -> None:
    await store.ask(store.client.xadd(store.keys.events(store.keys.shard(MAC)), {"k": "x", "m": "", "d": "{}"}))


async def test_what_a_job_offers_is_offered_at_bootstrap_and_sent_whole(
    client: httpx2.AsyncClient, store: Store, folder: Path
) -> None:
    image = image_of("2.10.0")
    offer = await offer_firmware(store, MAC, file=store_file(folder, image))
    await want_events(store)
    firmware = await offered(client)
    assert firmware is not None and firmware["version"] == "2.10.0" and "force" not in firmware
    assert firmware["url"].endswith(f"/xiaozhi/firmware/{offer_name(MAC, offer)}.bin")
    sent = await client.get(firmware["url"])
    assert (sent.status_code, sent.content) == (200, image)
    raw = dict(sent.headers.raw)
    assert raw[b"Content-Length"] == str(len(image)).encode()
    assert raw[b"X-Checksum-Sha256"] == hashlib.sha256(image).hexdigest().encode()
    assert (await client.get(firmware["url"])).status_code == 200, "a download may break off and begin again"
    (_, (booted, about), taken) = await events(store)
    assert (booted, about["offer"], about["firmware"]) == ("device.booted", "7-1", "2.4.2")
    assert taken == ("firmware.taken", {"offer": "7-1"}), "once"


@pytest.mark.parametrize("agent", ["board/2.10.0", "toaster/1.0.0"])
async def test_who_has_it_or_is_another_board_is_offered_nothing(
    client: httpx2.AsyncClient, store: Store, agent: str
) -> None:
    await offer_firmware(store, MAC)
    assert await offered(client, agent) is None
    assert await offered(client) is not None


async def test_a_body_that_names_another_board_stops_the_offer(client: httpx2.AsyncClient, store: Store) -> None:
    await offer_firmware(store, MAC)
    assert await offered(client, body=b'{"board":{"name":"another"}}') is None
    assert await offered(client, body=b"broken") is not None


async def test_what_a_device_does_not_take_is_offered_three_times_only(
    client: httpx2.AsyncClient, store: Store
) -> None:
    await offer_firmware(store, MAC)
    assert [await offered(client) is not None for _ in range(5)] == [True] * 3 + [False] * 2
    await offer_firmware(store, MAC)
    assert await offered(client) is None, "the same offer"
    await offer_firmware(store, MAC, name="7-2")
    assert await offered(client) is not None


async def test_what_was_taken_is_not_offered_again(client: httpx2.AsyncClient, store: Store, folder: Path) -> None:
    await offer_firmware(store, MAC, file=store_file(folder, image_of("2.10.0")))
    firmware = await offered(client)
    assert firmware is not None and (await client.get(firmware["url"])).status_code == 200
    assert await offered(client) is None


async def test_an_offer_that_is_over_or_withdrawn_counts_no_more(
    client: httpx2.AsyncClient, store: Store, folder: Path
) -> None:
    file = store_file(folder, image_of("2.10.0"))
    await offer_firmware(store, MAC, file=file, until=1)
    assert await offered(client) is None
    await offer_firmware(store, MAC, file=file, name="8-1")
    firmware = await offered(client)
    assert firmware is not None
    offers = Offers(store)
    assert await offers.withdraw({MAC: "8-2"}) == set(), "another one"
    assert await offers.withdraw({MAC: "8-1"}, untaken=True) == set(), "the device knows it"
    assert await offers.withdraw({MAC: "8-1"}) == {MAC}
    assert (await client.get(firmware["url"])).status_code == 404
    assert await offered(client) is None


async def test_an_older_version_is_forced(client: httpx2.AsyncClient, store: Store) -> None:
    await offer_firmware(store, MAC, "2.3.0", force=True)
    firmware = await offered(client)
    assert firmware is not None and (firmware["version"], firmware["force"]) == ("2.3.0", 1)


async def test_devices_are_sent_to_a_cdn_where_there_is_one(store: Store, keys: CredentialKeys, folder: Path) -> None:
    offer = await offer_firmware(store, MAC)
    async with api_client(store, keys, firmware_dir=folder, firmware_url="https://cdn.example/fw/") as client:
        firmware = await offered(client)
    assert firmware is not None
    assert firmware["url"] == f"https://cdn.example/fw/{offer.file}.bin?offer={offer_name(MAC, offer)}"


@pytest.mark.parametrize(
    "name",
    [
        "../secret",
        "..%2fsecret",
        "%2e%2e/secret",
        "..%5csecret",
        "secret",
        "aabbccddeeff-7-1-" + "0" * 32,
        "aabbccddee00-7-1-" + "5e" * 16,
        "aabbccddeeff-7-1-" + "5e" * 16 + "%00",
    ],
)
async def test_no_other_name_leads_to_a_file(client: httpx2.AsyncClient, store: Store, folder: Path, name: str) -> None:
    await offer_firmware(store, MAC, file=store_file(folder, image_of("2.10.0")))
    answer = await client.get(f"/xiaozhi/firmware/{name}.bin")
    assert answer.status_code in (400, 404)
    assert b"not for devices" not in answer.content and b"2.10.0" not in answer.content

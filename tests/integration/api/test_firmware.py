"""Firmware offers and downloads over real HTTP and a real Redis."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fleet.adapters.files.firmware_images import FirmwareImages
from fleet.adapters.redis.client.store import Store
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import BODY, api_client, headers, write_image

OTA = "/xiaozhi/ota/"


@pytest.fixture
def shelf(tmp_path: Path) -> FirmwareImages:
    return FirmwareImages(tmp_path / "firmware")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "firmware").mkdir()
    (tmp_path / "secret.bin").write_bytes(b"not for devices")
    return tmp_path / "firmware"


@pytest.fixture
async def client(
    store: Store, keys: CredentialKeys, shelf: FirmwareImages, folder: Path
) -> AsyncIterator[httpx2.AsyncClient]:
    async with api_client(store, keys, shelf) as client:
        yield client


async def offered(client: httpx2.AsyncClient, agent: str = "board/2.4.2", body: bytes = BODY) -> dict[str, Any] | None:
    answer = await client.post(OTA, headers=headers(User_Agent=agent), content=body)
    assert answer.status_code == 200
    found = answer.json().get("firmware")
    return dict(found) if found else None


async def test_the_newest_image_of_the_board_is_offered_and_sent_whole(
    client: httpx2.AsyncClient, shelf: FirmwareImages, folder: Path
) -> None:
    write_image(folder, "board", "2.4.9")
    image = write_image(folder, "board", "2.10.0")
    write_image(folder, "other-board", "9.0.0")
    shelf.look()
    firmware = await offered(client)
    assert firmware is not None and firmware["version"] == "2.10.0" and "force" not in firmware
    sent = await client.get(firmware["url"])
    assert (sent.status_code, sent.content) == (200, image)
    raw = dict(sent.headers.raw)
    assert raw[b"Content-Length"] == str(len(image)).encode()
    assert raw[b"X-Checksum-Sha256"] == hashlib.sha256(image).hexdigest().encode()


@pytest.mark.parametrize(
    "agent", ["board/2.5.0", "board/2.5.1", "board/dev", "board/v2.0", "board", "", "toaster/1.0.0"]
)
async def test_who_has_it_or_cannot_compare_is_offered_nothing(
    client: httpx2.AsyncClient, shelf: FirmwareImages, folder: Path, agent: str
) -> None:
    write_image(folder, "board", "2.5.0")
    shelf.look()
    assert await offered(client, agent) is None


async def test_a_body_that_names_another_board_stops_the_offer(
    client: httpx2.AsyncClient, shelf: FirmwareImages, folder: Path
) -> None:
    write_image(folder, "board", "2.5.0")
    shelf.look()
    assert await offered(client, body=b'{"board":{"name":"another"}}') is None
    assert await offered(client, body=b"broken") is not None


async def test_an_image_that_would_loop_or_is_damaged_is_not_offered(
    client: httpx2.AsyncClient, shelf: FirmwareImages, folder: Path
) -> None:
    write_image(folder, "board", "2.5.0", reports="2.4.2")
    write_image(folder, "board", "2.6.0", checked=False)
    write_image(folder, "board", "v2.7")
    write_image(folder, "board", "2.8.0")
    (folder / "board" / "2.8.0.bin").write_bytes(b"\xe9 damaged")
    shelf.look()
    assert await offered(client) is None


async def test_what_a_device_does_not_install_is_offered_three_times_only(
    client: httpx2.AsyncClient, shelf: FirmwareImages, folder: Path
) -> None:
    write_image(folder, "board", "2.5.0")
    shelf.look()
    assert [await offered(client) is not None for _ in range(5)] == [True] * 3 + [False] * 2
    write_image(folder, "board", "2.5.1")
    shelf.look()
    assert await offered(client) is not None


async def test_force_brings_every_device_to_a_version_once(
    client: httpx2.AsyncClient, shelf: FirmwareImages, folder: Path
) -> None:
    write_image(folder, "board", "2.3.0")
    write_image(folder, "board", "2.9.0")
    (folder / "board" / "force").write_text("2.3.0\n")
    shelf.look()
    firmware = await offered(client)
    assert firmware is not None and (firmware["version"], firmware["force"]) == ("2.3.0", 1)
    assert await offered(client, "board/2.3.0") is None


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "..%2fsecret",
        "board/../../secret",
        "board/%2e%2e%2f%2e%2e%2fsecret",
        "%2e%2e/secret",
        "board/..%5c..%5csecret",
        "board/2.5.0%00",
        "/etc/passwd",
        "nosuch/2.5.0",
    ],
)
async def test_no_name_leads_out_of_the_folder(
    client: httpx2.AsyncClient, shelf: FirmwareImages, folder: Path, path: str
) -> None:
    write_image(folder, "board", "2.5.0")
    shelf.look()
    answer = await client.get(f"/xiaozhi/firmware/{path}.bin")
    assert answer.status_code == 404
    assert b"not for devices" not in answer.content


async def test_a_file_that_was_changed_after_its_check_is_not_sent(
    client: httpx2.AsyncClient, shelf: FirmwareImages, folder: Path
) -> None:
    write_image(folder, "board", "2.5.0")
    shelf.look()
    (folder / "board" / "2.5.0.bin").write_bytes(b"something else")
    assert (await client.get("/xiaozhi/firmware/board/2.5.0.bin")).status_code == 404

"""Images over the REST API and as commands, and jobs that give them to devices."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fleet.adapters.files import image_store as image_files
from fleet.adapters.sql.audit_rows import AuditFilter, AuditRows
from fleet.client import images, jobs
from fleet.client.call import Call, ClientError
from fleet.client.client import AsyncFleetClient
from fleet.core.query.fields import version_number
from fleet.roles.control.routes import images as routes
from fleet.roles.control.routes.images import image_store
from fleet.wire.control.images import ImageUpload, StoredImage
from fleet.wire.control.jobs import JobRequest
from tests.support.command_line import CommandLine, command_line
from tests.support.control_operator import Operator
from tests.support.control_server import FULL, STRANGER, ControlStage
from tests.support.job_site import JobSite
from tests.support.offered_firmware import image_of

BOARD = "bread-compact"


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
async def client(stage: ControlStage) -> AsyncIterator[AsyncFleetClient]:
    async with AsyncFleetClient(str(stage.client.base_url), FULL) as opened:
        yield opened


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 1_000):
        yield content[at : at + 1_000]


async def upload(client: AsyncFleetClient, content: bytes, **about: str) -> StoredImage:
    asked = ImageUpload.model_validate({"board": BOARD, **about})
    return await client.upload(images.upload(asked), pieces(content), images.BINARY)


async def refused(client: AsyncFleetClient, call: Call) -> str:  # type: ignore[type-arg]
    with pytest.raises(ClientError) as refusal:
        await client.send(call)
    return f"{refusal.value.status} {refusal.value.code}"


async def refused_upload(client: AsyncFleetClient, content: bytes, **about: str) -> str:
    with pytest.raises(ClientError) as refusal:
        await upload(client, content, **about)
    return f"{refusal.value.status} {refusal.value.code}"


async def test_images_are_stored_once_shown_and_deleted(client: AsyncFleetClient, stage: ControlStage) -> None:
    content, store = image_of("2.5.0"), image_store(stage.services)
    made = await upload(client, content)
    assert (made.version, made.board, made.size, made.kind) == ("2.5.0", BOARD, len(content), "firmware")
    assert await upload(client, content, version="2.5.0", sha256=made.sha256) == made
    path = store.path(made.sha256)
    assert path is not None and path.read_bytes() == content
    assert (await client.send(images.listing())).items == [made] == [await client.send(images.read(made.id))]
    other = await upload(client, content, board="other")
    await client.send(images.remove(made.id))
    assert store.path(made.sha256) is not None, "the other board's image is the same file"
    await client.send(images.remove(other.id))
    assert store.path(made.sha256) is None
    assert await refused(client, images.read(made.id)) == "404 not-found"
    log = await AuditRows(stage.database).page(1, AuditFilter(object=f"firmware/{made.id}"), None, 9)
    assert [row.action for row in reversed(log)] == ["firmware.add", "firmware.delete"]


async def test_what_no_device_could_use_is_refused_and_leaves_no_file(
    client: AsyncFleetClient, stage: ControlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = image_of("2.5.0")
    for content, about, expected in (
        (b"no image", {}, "422 bad-image"),
        (b"", {}, "422 bad-image"),
        (image_of("v2.7"), {}, "422 bad-image"),
        (good, {"version": "2.6.0"}, "422 bad-image"),
        (good, {"sha256": "0" * 64}, "422 bad-image"),
        (b"words", {"kind": "assets"}, "422 bad-image"),
    ):
        assert await refused_upload(client, content, **about) == expected, about
    assert (await stage.ask("POST /v1/firmware?board=../x", content=good)).status_code in (415, 422)
    await upload(client, good)
    assert await refused_upload(client, good + b"x") == "409 name-taken"
    monkeypatch.setattr(routes, "LARGEST", 9_000)
    assert await refused_upload(client, good, board="b2") == "413 too-large"
    monkeypatch.setattr(routes, "MOST_IMAGES", 1)
    assert await refused_upload(client, image_of("1.0", 256), board="b2") == "409 too-many-images"
    folder = stage.services.settings.data_dir / "firmware"
    assert len(list(folder.iterdir())) == 1


async def test_a_tenant_that_uploads_slowly_leaves_places_to_others(
    client: AsyncFleetClient, stage: ControlStage
) -> None:
    over, folder = asyncio.Event(), stage.services.settings.data_dir / "firmware"

    async def slowly(content: bytes) -> AsyncIterator[bytes]:
        yield content[:1_000]
        await over.wait()
        yield content[1_000:]

    content = image_of("2.5.0")
    async with asyncio.TaskGroup() as group, AsyncFleetClient(str(stage.client.base_url), STRANGER) as other:
        for number in range(2):
            asked = images.upload(ImageUpload(board=f"slow{number}"))
            group.create_task(client.upload(asked, slowly(content), images.BINARY))
        try:
            while len(list(folder.glob(".*.part"))) < 2:
                await asyncio.sleep(0.01)
            assert await refused_upload(client, content) == "503 busy"
            assert (await upload(other, content)).version == "2.5.0"
        finally:
            over.set()
    assert (await upload(client, content)).board == BOARD


async def test_images_fill_neither_the_disk_nor_more_than_the_place_of_a_tenant(
    client: AsyncFleetClient, stage: ControlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = image_of("2.5.0")
    await upload(client, content)
    monkeypatch.setattr(routes, "MOST_BYTES", len(content) + 1)
    assert await refused_upload(client, content, board="b2") == "409 too-many-images"
    monkeypatch.setattr(image_files, "RESERVE_BYTES", 2**62)
    assert await refused_upload(client, content, board="b2") == "507 storage-full"
    assert len(list((stage.services.settings.data_dir / "firmware").iterdir())) == 1


async def test_another_tenant_neither_sees_nor_rolls_out_an_image(
    client: AsyncFleetClient, stage: ControlStage
) -> None:
    made = await upload(client, image_of("2.5.0"))
    async with AsyncFleetClient(str(stage.client.base_url), STRANGER) as other:
        assert (await other.send(images.listing())).items == []
        assert await refused(other, images.read(made.id)) == "404 not-found"
        assert await refused(other, images.remove(made.id)) == "404 not-found"
        assert await refused(other, jobs.create(rollout(made.id))) == "404 not-found"


def rollout(image: int, **fields: object) -> JobRequest:
    return JobRequest.model_validate(
        {"name": "r", "query": "", "kind": "firmware", "firmware": {"image": image}, **fields}
    )


async def test_a_rollout_names_an_image_which_is_kept_while_it_lasts(
    client: AsyncFleetClient, stage: ControlStage
) -> None:
    site = JobSite(stage.database, stage.services.store)
    await site.lead()
    old = {"board": BOARD, "firmware": "2.4.0", "firmware_number": version_number("2.4.0")}
    await site.add_devices(2, **old)
    image, words = await upload(client, image_of("2.5.0")), await upload(client, b"w", kind="assets", version="w1")
    seen = await client.send(jobs.preview(rollout(image.id)))
    assert (seen.devices, seen.skipped) == (2, [])
    made = await client.send(jobs.create(rollout(image.id)))
    assert made.firmware is not None and (made.firmware.image, made.firmware.how) == (image.id, "reboot")
    assert await refused(client, images.remove(image.id)) == "409 in-use"
    assert await refused(client, jobs.create(rollout(words.id))) == "422 invalid"
    assert await refused(client, jobs.create(rollout(999))) == "404 not-found"
    pushed = rollout(image.id, firmware={"image": image.id, "how": "push"})
    assert await refused(client, jobs.create(pushed)) == "409 no-address"
    for body in ({"kind": "firmware"}, {"kind": "tool", "tool": "x", "firmware": {"image": 1}}):
        asked = await stage.ask("POST /v1/jobs", json={"name": "x", "query": "", **body})
        assert asked.status_code == 422, body


async def test_the_command_uploads_and_rolls_out(
    client: AsyncFleetClient, stage: ControlStage, fleet: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "image.bin"
    file.write_bytes(image_of("2.5.0"))
    run = Operator(fleet, stage).run

    assert "firmware 2.5.0 for box" in await run("firmware", "add", str(file), "--board", "box")
    (image,) = (await client.send(images.listing())).items
    assert "2.5.0" in await run("firmware", "list") and "box" in await run("firmware", "show", str(image.id))
    made = await run("jobs", "create", "new firmware", "--query", "", "--firmware", str(image.id), "--how", "next_boot")
    assert "begins" in made
    found = [one async for page in client.pages(jobs.listing()) for one in page.items]
    assert found[0].firmware is not None and found[0].firmware.how == "next_boot"
    await client.send(jobs.steer(found[0].id, "stop"))


async def test_who_still_sends_a_file_that_is_too_large_gets_the_answer(
    stage: ControlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "LARGEST", 1)
    address = urlsplit(str(stage.client.base_url))
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"POST /v1/firmware?board=b HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {FULL}\r\n"
    writer.write(f"{head}Content-Type: {images.BINARY}\r\nContent-Length: 200000\r\n\r\n".encode() + b"x" * 1_000)
    await asyncio.sleep(0)
    writer.write(b"x" * 199_000)
    async with asyncio.timeout(240):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 413 ") and b"too-large" in answer
    writer.close()

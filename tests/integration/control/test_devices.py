"""Devices over the REST API, with both kinds of database; the client of fleet sends the requests."""

import base64
import csv
import io
import json
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.sql import database
from fleet.adapters.sql.device_copies import DeviceCopyRows
from fleet.adapters.sql.schema import AUDIT, DEVICE, DEVICE_TAG, PRESENCE
from fleet.client import devices
from fleet.client.call import ClientError
from fleet.client.client import AsyncFleetClient
from fleet.core.device_facts import DeviceFacts
from fleet.roles.control import wrong_codes
from fleet.roles.control.leader.device_copies import DeviceCopies
from fleet.wire.control.devices import DeviceAddition, DevicePatch
from fleet.wire.reminders import Reminder
from tests.support.control_server import FULL, OTHER_TENANT, STRANGER, ControlStage

MAC, SECOND, THIRD = (f"02:00:00:00:00:0{number}" for number in (1, 2, 3))


@pytest.fixture
async def client(stage: ControlStage) -> AsyncIterator[AsyncFleetClient]:
    async with AsyncFleetClient(str(stage.client.base_url), FULL) as opened:
        yield opened


@pytest.fixture
async def other(stage: ControlStage) -> AsyncIterator[AsyncFleetClient]:
    """A client of another tenant."""
    async with AsyncFleetClient(str(stage.client.base_url), STRANGER) as opened:
        yield opened


async def audit(stage: ControlStage, tenant: int = 1) -> list[tuple[str, str]]:
    lines = select(AUDIT.c.action, AUDIT.c.object).where(AUDIT.c.tenant == tenant).order_by(AUDIT.c.id)
    async with stage.database.reading() as connection:
        return [tuple(row) for row in await connection.execute(lines)]  # type: ignore[misc]


async def refused(client: AsyncFleetClient, call: devices.Call) -> tuple[int, str]:  # type: ignore[type-arg]
    with pytest.raises(ClientError) as refusal:
        await client.send(call)
    return refusal.value.status, refusal.value.code


async def test_a_device_is_registered_changed_and_found(stage: ControlStage, client: AsyncFleetClient) -> None:
    new = DeviceAddition(mac=MAC.upper(), name="Küche", tags={"site": "berlin"}, attributes={"a": [1]})
    added = await client.send(devices.register(new))
    assert (added.mac, added.name, added.version, added.state, added.first_seen) == (
        MAC,
        "Küche",
        1,
        "registered",
        None,
    )
    assert await refused(client, devices.register(new)) == (409, "taken")
    changed = await client.send(devices.change(MAC, DevicePatch(notes="by the door")).of_version(1))
    assert (changed.notes, changed.name, changed.version) == ("by the door", "Küche", 2)
    stale = devices.change(MAC, DevicePatch(name="x")).of_version(1)
    assert await refused(client, stale) == (412, "version-conflict")
    tagged = await client.send(devices.tag(MAC, {"site": None, "floor": "3"}))
    assert tagged.tags == {"floor": "3"}
    page = await client.send(devices.search("tag.floor=3 AND name:küche", fields="mac,name", count=True))
    assert [one.model_dump(exclude_none=True) for one in page.items] == [{"mac": MAC, "name": "Küche"}]
    assert (page.next, page.total, page.total_is_least) == (None, 1, False)
    assert await audit(stage) == [(f"device.{verb}", f"device/{MAC}") for verb in ("register", "update", "update")]
    tags = {f"k{number}": "v" for number in range(60)}
    assert await refused(client, devices.tag(MAC, tags)) == (409, "too-many-tags")
    assert len(await audit(stage)) == 3, "what is refused changes nothing"


async def test_of_a_bad_request_the_fault_is_named(stage: ControlStage) -> None:
    answer = await stage.ask("GET /v1/devices", params={"filter": "online AND firmwar<2"})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-filter")
    assert answer.json()["errors"][0]["position"] == 11
    wrong = {
        "filter=a%00b": 400,
        "cursor=x": 400,
        "fields=nam": 400,
        "limit=501": 422,
        "sort=board": 422,
        "filtre=x": 422,
    }
    for query, status in wrong.items():
        assert (await stage.ask(f"GET /v1/devices?{query}")).status_code == status, query
    assert (await stage.ask("GET /v1/devices:counts?by=name")).status_code == 400
    assert (await stage.ask("GET /v1/devices/nonsense")).status_code == 404
    assert (await stage.ask(f"PATCH /v1/devices/{MAC}", json={"name": 1})).status_code == 422
    assert (await stage.ask(f"PATCH /v1/devices/{MAC}", json={}, headers={"If-Match": "x"})).status_code == 400


async def test_a_query_that_takes_too_long_is_said(stage: ControlStage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await stage.ask("GET /v1/devices?filter=notes:*" + "a" * 200)).json()["code"] == "bad-filter"
    monkeypatch.setattr(database, "LOOK_SECONDS", 0.0)
    for verb in ("GET /v1/devices?filter=notes:a*b", "GET /v1/devices:counts?filter=notes:a*b&by=board"):
        answer = await stage.ask(verb)
        assert (answer.status_code, answer.json()["code"]) == (503, "slow-query"), answer.text
    monkeypatch.undo()
    assert (await stage.ask("GET /v1/devices?filter=notes:a*b")).status_code == 200


async def test_pages_go_on_and_facets_are_counted(client: AsyncFleetClient) -> None:
    for number in range(7):
        mac = f"02:00:00:00:01:0{number}"
        await client.send(devices.register(DeviceAddition(mac=mac, tags={"site": "ab"[number % 2]})))
    pages = [page async for page in client.pages(devices.search(limit=3))]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    [sites, online] = (await client.send(devices.counts("tag.site,online"))).items
    assert (sites.values, online.values) == ({"a": 4, "b": 3}, {"false": 7})


async def test_a_cursor_holds_for_one_list_of_one_tenant(stage: ControlStage, client: AsyncFleetClient) -> None:
    for mac in (MAC, SECOND):
        await client.send(devices.register(DeviceAddition(mac=mac, name="😀" * 200)))
    cursor = (await stage.ask("GET /v1/devices?limit=1&sort=name")).json()["next"]
    [found] = (await stage.ask(f"GET /v1/devices?limit=1&sort=name&cursor={cursor}")).json()["items"]
    assert found["mac"] == SECOND
    for token, query in ((FULL, "sort=mac"), (FULL, "sort=name&filter=online"), (STRANGER, "sort=name")):
        answer = await stage.ask(f"GET /v1/devices?limit=1&{query}&cursor={cursor}", token)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-cursor"), query
    cursor = (await stage.ask("GET /v1/devices?limit=1")).json()["next"]
    text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    for place in range(len(text)):
        damaged = base64.urlsafe_b64encode(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]).decode()
        assert (await stage.ask(f"GET /v1/devices?cursor={damaged.rstrip('=')}")).status_code == 400, place


async def test_what_the_device_told_is_read(stage: ControlStage, client: AsyncFleetClient) -> None:
    rows = DeviceCopyRows(stage.database)
    number = await rows.tool_list(["self.reboot"], "digest")
    for at, online in ((1_000, True), (2_000, False), (3_000, True)):
        facts = DeviceFacts(MAC, "bound", online=online, presence_at=at, pages="p", has_tools=True, board="b")
        await rows.write([facts], {"p": number})
    assert (await client.send(devices.tools(MAC))).items == ["self.reboot"]
    history = await client.send(devices.presence(MAC, limit=2))
    assert [moment.online for moment in history.items] == [True, False]
    assert history.next == history.items[-1].at
    page = await client.send(devices.search("tool=self.reboot AND online AND board:b"))
    assert [one.last_seen is not None for one in page.items] == [True]


async def test_decisions_are_carried_out_and_audited(stage: ControlStage, client: AsyncFleetClient) -> None:
    await client.send(devices.register(DeviceAddition(mac=MAC)))
    assert (await client.send(devices.bind(MAC, "c1"))).changed
    assert (await Admissions(stage.services.store).read(MAC)).client == "c1"
    read = await client.send(devices.read(MAC))
    assert (read.state, read.client, read.version) == ("bound", "c1", 1)
    await Admissions(stage.services.store).decide("first", BootstrapAsker(MAC, "c2", "192.0.2.1"), {})
    await Claims(stage.services.store).note(MAC, "192.0.2.1")
    assert [claim.client for claim in (await client.send(devices.claims())).items] == ["c2"]
    assert (await client.send(devices.accept(MAC, "c"))).changed
    assert (await Admissions(stage.services.store).read(MAC)).client == "c2"
    assert (await client.send(devices.claims(MAC))).items == []
    assert await refused(client, devices.refuse(MAC)) == (404, "not-found")
    for verb, state in (("revoke", "revoked"), ("unrevoke", "bound"), ("unbind", "registered")):
        assert (await client.send(devices.decide(MAC, verb))).changed, verb  # type: ignore[arg-type]
        assert (await client.send(devices.read(MAC))).state == state
    await client.send(devices.debug(MAC, 5))
    verbs = [action.removeprefix("device.") for action, _ in await audit(stage)]
    assert verbs == ["register", "bind", "accept", "revoke", "unrevoke", "unbind", "debug"]


async def test_who_enters_a_code_gets_the_device(
    stage: ControlStage, client: AsyncFleetClient, other: AsyncFleetClient
) -> None:
    pending = await Activations(stage.services.store).begin(MAC, "c1", "SN", with_code=True)
    await TraceStore(stage.services.store).record_refusal(MAC, "not bound")
    assert [(one.mac, one.code) for one in (await client.send(devices.waiting())).items] == [(MAC, pending.code)]
    assert (await other.send(devices.waiting())).items == []
    assert await refused(other, devices.bind(MAC)) == (404, "not-found")
    assert (await other.send(devices.bind_code(pending.code))).mac == MAC
    assert (await other.send(devices.read(MAC))).state == "bound"
    assert await refused(client, devices.read(MAC)) == (404, "not-found")
    assert await refused(other, devices.bind_code(pending.code)) == (404, "not-found")
    await Admissions(stage.services.store).unbind(MAC)
    again = await Activations(stage.services.store).begin(MAC, "c1", "SN", with_code=True)
    assert await refused(client, devices.bind_code(again.code)) == (409, "taken")


async def test_codes_cannot_be_guessed(
    stage: ControlStage, client: AsyncFleetClient, other: AsyncFleetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long a test takes, no further code may be tried meanwhile.
    monkeypatch.setattr(wrong_codes, "_clock", lambda: 1_000.0)
    pending = await Activations(stage.services.store).begin(MAC, "c1", "SN", with_code=True)
    wrong = [f"{(int(pending.code) + step) % 1_000_000:06}" for step in range(1, 12)]
    statuses = [(await refused(other, devices.bind_code(code)))[0] for code in wrong]
    assert statuses == [404] * 10 + [429]
    second = await stage.add_token("flt_second", "devices:write", tenant=OTHER_TENANT)
    late = await stage.ask("POST /v1/devices:bind", second, json={"code": pending.code})
    assert late.status_code == 429 and 0 < int(late.headers["Retry-After"]) <= 60, "another token, and the right code"
    assert (await client.send(devices.bind_code(pending.code))).mac == MAC, "of a tenant that did not guess"


async def test_a_forgotten_device_leaves_nothing(stage: ControlStage, client: AsyncFleetClient) -> None:
    await client.send(devices.register(DeviceAddition(mac=MAC, tags={"site": "berlin"})))
    await Admissions(stage.services.store).decide("first", BootstrapAsker(MAC, "c1"), {"board": "b"})
    await Devices(stage.services.store).appear(MAC, online=True, epoch=5)
    await DeviceCopies(stage.services.store, stage.database).refresh([MAC])
    assert await refused(client, devices.decide(MAC, "forget")) == (409, "connected")
    await client.send(devices.decide(MAC, "revoke"))
    await Devices(stage.services.store).appear(MAC, online=False, epoch=6)
    assert await refused(client, devices.decide(MAC, "forget")) == (409, "revoked")
    await client.send(devices.decide(MAC, "unrevoke"))
    stale = devices.decide(MAC, "forget").of_version(77)
    assert await refused(client, stale) == (412, "version-conflict")
    version = (await client.send(devices.read(MAC))).version
    await client.send(devices.decide(MAC, "forget").of_version(version))
    assert [name for name in await stage.services.store.scan("*") if MAC in name] == []
    async with stage.database.reading() as connection:
        for table in (DEVICE, DEVICE_TAG, PRESENCE):
            assert (await connection.execute(select(table))).all() == [], table.name
    assert (await audit(stage))[-1] == ("device.forget", f"device/{MAC}")
    assert await refused(client, devices.decide(MAC, "forget")) == (404, "not-found")


async def remind(stage: ControlStage) -> None:
    """Set a reminder of the device, as the owner of its shard does."""
    store = stage.services.store
    owner = await Leases(store, "w", 60).take(store.keys.shard(MAC))
    assert owner is not None
    await Reminders(store).add(owner, MAC, Reminder(id="r1", text="Call Anna.", due=4_000_000_000_000))


async def test_a_device_moves_to_another_tenant(
    stage: ControlStage, client: AsyncFleetClient, other: AsyncFleetClient
) -> None:
    await client.send(devices.register(DeviceAddition(mac=MAC, name="x", tags={"site": "berlin"})))
    assert await refused(other, devices.move(MAC, "default")) == (403, "site-only")
    assert await refused(client, devices.move(MAC, "nowhere")) == (404, "not-found")
    await Devices(stage.services.store).appear(MAC, online=False, epoch=1)
    await remind(stage)
    assert not (await client.send(devices.move(MAC, "default"))).changed
    assert len(await Reminders(stage.services.store).read(MAC)) == 1
    assert (await client.send(devices.move(MAC, "other"))).changed
    assert await Reminders(stage.services.store).read(MAC) == [], "they are of the users of the old tenant"
    store = stage.services.store
    assert await store.client.hget(store.keys.device(MAC), "ten") == "2", "it shares places with its new tenant"
    assert await refused(client, devices.read(MAC)) == (404, "not-found")
    moved = await other.send(devices.read(MAC))
    assert (moved.name, moved.agent, moved.tags) == ("x", "", {"site": "berlin"})
    assert [one.mac for one in (await other.send(devices.search("tag.site=berlin"))).items] == [MAC]
    assert {("device.move", f"device/{MAC}")} <= set(await audit(stage, 1)) & set(await audit(stage, 2))


async def test_files_are_imported_and_exported(
    stage: ControlStage, client: AsyncFleetClient, other: AsyncFleetClient
) -> None:
    await other.send(devices.register(DeviceAddition(mac=THIRD)))
    lines = [f"{MAC},'=Küche,a", f"{SECOND},b,", f"{THIRD},c,", "x,,", f"{MAC},d,b"]

    async def send(text: str, kind: str = "text/csv") -> devices.ImportReport:
        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(text.encode()), 5):
                yield text.encode()[at : at + 5]

        return await client.upload(devices.import_file(), pieces(), kind)

    done = await send("\r\n".join(["mac,name,tag.site", *lines]))
    assert (done.added, done.changed, done.unchanged, done.failed) == (2, 0, 0, 2)
    assert sorted(fault.line for fault in done.errors) == [4, 5]
    exported = b"".join([piece async for piece in client.download("/devices:export", {})]).decode()
    rows = list(csv.DictReader(io.StringIO(exported)))
    assert [(row["mac"], row["name"], row["tag.site"]) for row in rows] == [(MAC, "d", "b"), (SECOND, "b", "")]
    again = await send(exported)
    assert (again.added, again.changed, again.unchanged, again.failed) == (0, 0, 2, 0)
    query = {"format": "ndjson", "filter": "tag.site=b"}
    exported = b"".join([piece async for piece in client.download("/devices:export", query)]).decode()
    assert [json.loads(line)["mac"] for line in exported.splitlines()] == [MAC]
    assert (await send(exported, "application/x-ndjson")).unchanged == 1
    assert [action for action, _ in await audit(stage)] == ["device.import"]
    for text, kind, status in (("name\n", "text/csv", 400), ("", "text/plain", 415)):
        with pytest.raises(ClientError) as error:
            await send(text, kind)
        assert error.value.status == status

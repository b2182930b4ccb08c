"""Operators' calls, texts and facts over HTTP; a worker's part makes the calls, and the test is the device."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.redis.devices.memories import Memories
from fleet.adapters.redis.sessions.replies import Reply
from fleet.adapters.redis.shards import operator_calls
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.operator_calls import MOST_QUEUED, OperatorCalls
from fleet.adapters.sql.audit_rows import AuditFilter, AuditRows
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.core.memory import MemoryChanges
from fleet.core.permissions import DEVICES_DANGEROUS, SCOPES
from fleet.core.rates import Rate
from fleet.ground.tasks import running
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.operator_calls import OperatorCallRunner
from fleet.wire.edge_messages import SayEvent, UtteranceEvent
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import ResponseEvent
from fleet.wire.reminders import Reminder
from tests.support.announced import announcements
from tests.support.control_server import OTHER_TENANT, STRANGER, ControlStage, control_stage
from tests.support.worker_stage import MAC, WorkerStage, worker_stage

LEVEL = {"type": "object", "properties": {"volume": {"type": "integer", "maximum": 100}}, "required": ["volume"]}
VOLUME, OVEN = ToolSpec(name="self.audio_speaker.set_volume", input_schema=LEVEL), ToolSpec(name="self.oven.heat")
DONE: dict[str, Any] = {"content": [{"type": "text", "text": "true"}]}
PATH = f"/v1/devices/{MAC}"
OTHER = "02:00:00:00:00:99"


class Site:
    def __init__(self, control: ControlStage, worker: WorkerStage) -> None:
        self.control, self.worker = control, worker
        resources = worker.resources
        self.queue = OperatorCalls(resources.store)
        self.calls = DeviceCalls(resources.calls, resources.reports, Rate(1, 1), worker.counts)
        self.runner = OperatorCallRunner(
            resources, self.queue, self.calls, lambda: {0: worker.shard}, announcements(worker)
        )

    @property
    def requests(self) -> list[Any]:
        return [one["payload"] for one in self.worker.sent() if one["type"] == "mcp"]

    async def serve(self, result: Any = DONE) -> None:
        """Answer every call."""
        answered = 0
        while True:
            for request in self.requests[answered:]:
                answered += 1
                await self.calls.answer(self.worker.shard, MAC, ResponseEvent(str(request["id"]), result))
            await asyncio.sleep(0.01)

    async def call(self, tool: str, wait: int = 120, **more: Any) -> Any:
        return await self.control.ask(f"POST {PATH}/tools/{tool}:call?wait={wait}", **{"json": {}} | more)

    async def events(self) -> list[Any]:
        inboxes = Inboxes(self.worker.resources.store)
        return [entry.event for entry in await inboxes.read_shards({0: "0"})]


@pytest.fixture
async def site(database: Database, tmp_path: Path) -> AsyncIterator[Site]:
    async with (
        worker_stage() as worker,
        control_stage(database, worker.resources.store, tmp_path) as control,
    ):
        await DeviceRows(database, 1).add([NewDevice(mac=MAC)])
        await worker.connect()
        await worker.resources.tools.register(worker.shard.owner, MAC, "xiaozhi", (VOLUME, OVEN))
        yield Site(control, worker)


async def test_tools_come_with_their_schemas_and_risks(site: Site) -> None:
    found = {one["name"]: one for one in (await site.control.ask(f"GET {PATH}/tools")).json()["tools"]}
    assert (found[VOLUME.name]["input_schema"], found[VOLUME.name]["risk"]) == (LEVEL, "act")
    assert (found[OVEN.name]["risk"], found[OVEN.name]["user_only"]) == ("dangerous", False)
    assert (found["self.reboot"]["risk"], found["self.reboot"]["user_only"]) == ("dangerous", True)
    assert (await site.control.ask(f"GET {PATH}/tools", STRANGER)).status_code == 404


async def test_a_tool_is_called_once_for_its_idempotency_key_and_audited(site: Site) -> None:
    async with running("runner", site.runner.run), running("device", site.serve):
        sent = {"json": {"arguments": {"volume": 40}}, "headers": {"Idempotency-Key": "k1"}}
        first = await site.call(VOLUME.name, **sent)
        assert (first.status_code, first.json()["state"], first.json()["text"]) == (200, "ok", "true")
        again = await site.call(VOLUME.name, **sent)
        assert again.json()["id"] == first.json()["id"]
        other = await site.call(VOLUME.name, json={"arguments": {"volume": 40}})
        assert other.json()["id"] != first.json()["id"]
    assert [one["params"]["arguments"] for one in site.requests] == [{"volume": 40}] * 2
    rows = await AuditRows(site.control.database).page(1, AuditFilter(), None, 10)
    assert [row.action for row in rows].count("device.call") == 2


async def test_a_call_without_wait_is_asked_for_later(site: Site) -> None:
    queued = await site.call(VOLUME.name, wait=0, json={"arguments": {"volume": 1}})
    assert (queued.status_code, queued.json()["state"]) == (202, "queued")
    where = queued.headers["location"]
    assert (await site.control.ask(f"GET {where}")).status_code == 202
    async with running("runner", site.runner.run), running("device", site.serve):
        while (answer := await site.control.ask(f"GET {where}")).status_code == 202:
            await asyncio.sleep(0.02)
    assert answer.json()["state"] == "ok"
    assert (await site.control.ask(f"GET {PATH}/calls/nobody")).status_code == 404


async def test_what_cannot_be_called_is_refused_before_anything_is_sent(site: Site) -> None:
    await site.control.add_token("careful", *(set(SCOPES) - {DEVICES_DANGEROUS}))
    for tool in ("self.reboot", "self.upgrade_firmware", OVEN.name):
        refused = await site.call(tool, 0, token="careful", json={"arguments": {"url": "http://x"}})
        assert (refused.status_code, refused.json()["code"]) == (403, "scope-missing"), tool
    assert (await site.call("self.nothing")).status_code == 404
    wrong = await site.call(VOLUME.name, json={"arguments": {"volume": 400}})
    assert (wrong.status_code, wrong.json()["errors"][0]["at"]) == (422, "body.arguments")
    assert (await site.call("self.upgrade_firmware")).status_code == 422, "its address is needed"
    assert site.requests == []


async def test_a_full_queue_refuses_calls(site: Site) -> None:
    inbox = site.worker.resources.store.keys.operator_calls(0)
    for _ in range(MOST_QUEUED):
        site.worker.redis.run("XADD", inbox, "*", "m", "{}")
    full = await site.call(VOLUME.name, json={"arguments": {"volume": 1}})
    assert (full.status_code, full.json()["code"]) == (429, "too-many-calls")


async def _let_another_tenant_have_a_device(site: Site) -> None:
    await DeviceRows(site.control.database, OTHER_TENANT).add([NewDevice(mac=OTHER)])
    resources = site.worker.resources
    assert resources.store.keys.shard(OTHER) == resources.store.keys.shard(MAC)
    await resources.tools.register(site.worker.shard.owner, OTHER, "xiaozhi", (VOLUME,))


async def _fill(site: Site, **more: Any) -> int:
    """Call until the shard refuses; return how many calls it took."""
    for count in range(9):
        headers = {"Idempotency-Key": f"k{count}"}
        sent = {"json": {"arguments": {"volume": 1}, "within": 3600}, "headers": headers}
        answer = await site.call(VOLUME.name, **(sent | more))
        if answer.status_code == 429:
            assert (answer.json()["code"], answer.headers["Retry-After"]) == ("too-many-calls", "5")
            return count
    return 9


async def _call_as_the_other(site: Site) -> Any:
    path = f"/v1/devices/{OTHER}/tools/{VOLUME.name}:call"
    return await site.control.ask(f"POST {path}", STRANGER, json={"arguments": {"volume": 1}})


async def test_a_tenant_that_fills_a_queue_leaves_room_for_others(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_calls, "MOST_QUEUED", 8)
    await _let_another_tenant_have_a_device(site)
    assert await _fill(site, wait=0) == 4
    assert (await _call_as_the_other(site)).status_code == 202


async def test_a_tenant_that_fills_the_list_of_records_leaves_room_for_others(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_calls, "MOST_RECORDS", 8)
    await _let_another_tenant_have_a_device(site)
    async with running("runner", site.runner.run), running("device", site.serve):
        assert await _fill(site) == 4
        assert (await _call_as_the_other(site)).status_code == 202


async def test_a_text_begins_a_turn_and_its_answer_is_returned(site: Site) -> None:
    accepted = await site.control.ask(f"POST {PATH}/turns", json={"text": "hello"})
    assert (accepted.status_code, accepted.json()["state"]) == (202, "accepted")
    [event] = await site.events()
    assert isinstance(event, UtteranceEvent) and (event.text, event.typed, event.heard) == ("hello", True, "")
    assert not event.no_dangerous_tools
    owner, turn = site.worker.shard.owner, accepted.json()["id"]
    await site.worker.resources.replies.write(owner, MAC, turn, Reply("answered", "Good day."))
    done = await site.control.ask(f"GET {accepted.headers['location']}")
    assert (done.status_code, done.json()["text"]) == (200, "Good day.")


async def test_a_repeated_text_is_told_where_its_turn_is_and_not_what_was_said(site: Site) -> None:
    async def answer() -> None:
        while not (events := await site.events()):
            await asyncio.sleep(0.01)
        await site.worker.resources.replies.write(
            site.worker.shard.owner, MAC, events[0].turn, Reply("answered", "The PIN is 4711.")
        )

    request, key = f"POST {PATH}/turns?wait=120", {"Idempotency-Key": "k"}
    async with running("answer", answer):
        first = await site.control.ask(request, json={"text": "hello"}, headers=key)
    assert (first.status_code, first.json()["text"]) == (200, "The PIN is 4711.")
    again = await site.control.ask(request, json={"text": "hello"}, headers=key)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (202, "true")
    assert again.json() == {**first.json(), "state": "accepted", "text": ""}
    assert (await site.control.ask(f"GET {again.headers['location']}")).json() == first.json()
    assert len(await site.events()) == 1


async def test_a_text_calls_dangerous_tools_only_with_their_scope(site: Site) -> None:
    await site.control.add_token("careful", *(set(SCOPES) - {DEVICES_DANGEROUS}))
    await site.control.ask(f"POST {PATH}/turns", token="careful", json={"text": "Take a photo."})
    [event] = await site.events()
    assert isinstance(event, UtteranceEvent) and event.no_dangerous_tools


async def test_a_text_is_spoken_in_a_session_and_refused_without_one(site: Site) -> None:
    idle = await site.control.ask(f"POST {PATH}:say", json={"text": "Dinner is ready."})
    assert (idle.status_code, idle.json()["code"]) == (409, "idle")
    await site.worker.open("s1")
    assert (await site.control.ask(f"POST {PATH}:say", json={"text": "。。。"})).status_code == 422
    said = await site.control.ask(f"POST {PATH}:say", json={"text": "Dinner is ready."})
    assert said.status_code == 202
    [event] = await site.events()
    assert isinstance(event, SayEvent) and (event.text, event.session) == ("Dinner is ready.", "s1")
    await site.worker.connect(online=False, epoch=2)
    assert (await site.control.ask(f"POST {PATH}/turns", json={"text": "x"})).json()["code"] == "offline"


async def test_reminders_are_shown_and_cancelled_by_their_tenant_alone(site: Site) -> None:
    reminders = site.worker.resources.reminders
    for name, due, clock in (("a", 2_000, "07:00"), ("b", 1_000, "")):
        one = Reminder(id=name, text=f"Text of {name}.", due=due, clock=clock)
        assert await reminders.add(site.worker.shard.owner, MAC, one) == one
    shown = (await site.control.ask(f"GET {PATH}/reminders")).json()["items"]
    assert shown == [
        {"id": "b", "text": "Text of b.", "due": "1970-01-01T00:00:01.000Z", "daily": None},
        {"id": "a", "text": "Text of a.", "due": "1970-01-01T00:00:02.000Z", "daily": "07:00"},
    ]
    for verb in (f"GET {PATH}/reminders", f"DELETE {PATH}/reminders/a"):
        assert (await site.control.ask(verb, STRANGER)).status_code == 404
    assert (await site.control.ask(f"DELETE {PATH}/reminders/a")).status_code == 204
    assert (await site.control.ask(f"DELETE {PATH}/reminders/a")).json()["code"] == "not-found"
    assert [one.id for one in await reminders.read(MAC)] == ["b"]
    rows = await AuditRows(site.control.database).page(1, AuditFilter(), None, 10)
    assert [row.before for row in rows if row.action == "reminder.cancel"] == [{"reminder": "a"}]


async def test_facts_are_shown_and_deleted(site: Site) -> None:
    resources = site.worker.resources
    facts = MemoryChanges(add=("Ada lives here.", "She likes tea."))
    await Memories(resources.store).change(site.worker.shard.owner, MAC, facts)
    assert len((await site.control.ask(f"GET {PATH}/memory")).json()["items"]) == 2
    forgot = await site.control.ask(f"POST {PATH}/memory:forget", json={"facts": ["She likes tea."]})
    assert forgot.json() == {"count": 1}
    assert (await site.control.ask(f"DELETE {PATH}/memory")).json() == {"count": 1}
    assert (await site.control.ask(f"GET {PATH}/memory")).json() == {"items": []}

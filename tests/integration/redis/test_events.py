"""The events of devices, sessions, turns and calls: written with the state, once, and only while they are wanted."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.sessions.calls import CallBegun, CallingTurn, CallTable
from fleet.adapters.redis.sessions.conversations import Conversations, Opening, StoredJournal
from fleet.adapters.redis.sessions.sessions import SessionRecord, Sessions
from fleet.adapters.redis.sessions.spoken_answers import SpokenAnswers
from fleet.adapters.redis.sessions.turn_data import TurnFacts
from fleet.adapters.redis.shards.events import BEGUN, Outbox
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.ports import Message, TokenUsage
from fleet.wire.edge_messages import AnswerDoneEvent
from fleet.wire.fleet_events import SpokenData
from fleet.wire.messages import AudioFormat

ASKED, SAID = Message("user", "how late is it"), Message("assistant", "Noon.")
OTHER = "aa:bb:cc:00:00:01"


class Events:
    """Reads the stream of the device's shard."""

    def __init__(self, store: Store, mac: str) -> None:
        self.outbox, self.mac = Outbox(store), mac
        self.shard = store.keys.shard(mac)
        self.last = "0-0"

    async def want(self) -> None:
        await self.outbox.want({self.shard: self.last})

    async def new(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return kind and data of the events since the last call."""
        entries = await self.outbox.read({self.shard: self.last}, 100, 0.01)
        if entries:
            self.last = entries[-1].id
        assert all(entry.mac == self.mac for entry in entries if entry.kind != BEGUN)
        return [(entry.kind, json.loads(entry.data)) for entry in entries if entry.kind != BEGUN]


@pytest.fixture
async def events(store: Store, mac: str) -> Events:
    one = Events(store, mac)
    await one.want()
    return one


def session(mac: str, name: str = "s1") -> SessionRecord:
    return SessionRecord(name, mac, "xiaozhi", "e1", 7, "0" * 32, AudioFormat(16000, 60), AudioFormat(24000, 60))


async def test_nothing_is_written_while_nobody_wants_events(store: Store, mac: str) -> None:
    await Devices(store).appear(mac, online=True, epoch=1)
    assert not any(await Outbox(store).waiting(range(16)))
    assert not await store.client.exists(store.keys.events(store.keys.shard(mac)))


async def test_presence_tells_of_each_change_once(store: Store, mac: str, events: Events) -> None:
    devices = Devices(store)
    for online, epoch in ((True, 1), (True, 1), (True, 2), (False, 2), (False, 2), (False, 1)):
        await devices.appear(mac, online=online, epoch=epoch)
    assert [kind for kind, _ in await events.new()] == ["device.online", "device.online", "device.offline"]


async def test_presence_tells_with_which_key_a_device_is_connected(store: Store, mac: str, events: Events) -> None:
    devices = Devices(store)
    for epoch, user in ((1, "device.k1"), (2, ""), (3, "device.k-2.first.7"), (4, "someone")):
        await devices.appear(mac, online=True, epoch=epoch, user=user)
    assert [data for _, data in await events.new()] == [{"key": "k1"}, {}, {"key": "k-2"}, {}]


async def test_devices_of_a_restarted_broker_are_told_to_be_offline(
    store: Store, owner: Owner, mac: str, events: Events
) -> None:
    await Devices(store).appear(mac, online=True, epoch=1)
    await events.new()
    await Devices(store).outdate(owner, store.keys.shard(mac), 2, 10)
    assert await events.new() == [("device.offline", {"reason": "the broker restarted"})]


async def test_a_session_begins_and_ends_once(store: Store, owner: Owner, mac: str, events: Events) -> None:
    sessions = Sessions(store)
    await Devices(store).appear(mac, online=True, epoch=1)
    for name in ("s1", "s1", "s2"):
        await sessions.open(owner, session(mac, name))
    for name in ("s1", "s2", "s2"):
        await sessions.close(owner, mac, name, "idle")
    assert (await events.new())[1:] == [
        ("session.started", {"session": "s1", "replaces": "", "dialect": "xiaozhi"}),
        ("session.started", {"session": "s2", "replaces": "s1", "dialect": "xiaozhi"}),
        ("session.ended", {"session": "s2", "reason": "idle"}),
    ]


async def test_a_call_tells_of_its_end_once(store: Store, owner: Owner, mac: str, events: Events) -> None:
    calls = CallTable(store)
    results = {"ok": '["ok", "40"]', "error": '["error", "no"]', "unknown": None, "not_sent": None}
    for outcome, result in results.items():
        begun = await calls.begin(mac, f"t1:{outcome}", 60, None, "self.set_volume")
        assert isinstance(begun, CallBegun)
        for _ in range(2):
            if result is None:
                await calls.give_up(mac, begun.id, sent=outcome == "unknown")
            else:
                await calls.complete(mac, str(begun.id), result)
    told = await events.new()
    assert [data["outcome"] for _, data in told] == list(results)
    assert {(kind, data["tool"]) for kind, data in told} == {("tool.called", "self.set_volume")}
    await Conversations(store, 60).begin(owner, mac, Opening("", "t2", ASKED, "1-1"), 60, 9)
    begun = await calls.begin(mac, "t2:1", 0.001, CallingTurn(owner, "t2"), "self.x")
    while not await calls.sweep(store.keys.shard(mac)):
        pass
    assert [(kind, data["turn"], data["outcome"]) for kind, data in await events.new()] == [
        ("tool.called", "t2", "unknown")
    ]


async def test_a_turn_tells_how_it_ended(store: Store, owner: Owner, mac: str, events: Events) -> None:
    for turn, (recorded, apology) in enumerate(((False, ""), (True, ""), (True, "Sorry."))):
        name = f"t{turn}"
        conversations = Conversations(store, 60, recorded=recorded)
        await conversations.begin(owner, mac, Opening("", name, ASKED, f"{turn + 1}-1"), 60, 9)
        journal = StoredJournal(name, "written", (ASKED, SAID), 1, apology=apology, usage=TokenUsage(9, 2, 3))
        facts = TurnFacts("s1", language="en", speech_ms=700, stages={"heard": 80})
        for _ in range(2):
            await conversations.remember(owner, mac, journal, (ASKED, SAID), facts)
    told = await events.new()
    assert [kind for kind, _ in told] == ["turn.answered", "turn.answered", "turn.failed"]
    bare = {"turn": "t0", "session": "s1", "language": "en", "speech_ms": 700, "stages": {"heard": 80}}
    bare |= {"input_tokens": 9, "cached_tokens": 2, "output_tokens": 3}
    assert told[0][1] == bare
    assert told[1][1] == bare | {"turn": "t1", "user": ASKED.text, "answer": SAID.text}


async def test_an_interruption_is_told_apart_from_an_end(store: Store, owner: Owner, mac: str, events: Events) -> None:
    conversations = Conversations(store, 60, recorded=True)
    for turn, states in (("t1", ("cut", "cut")), ("t2", ("written", "cut", "cut"))):
        await conversations.begin(owner, mac, Opening("", turn, ASKED, f"{turn[1]}-1"), 60, 9)
        for state in states:
            await conversations.remember(owner, mac, StoredJournal(turn, state, (ASKED,), 0), (ASKED,))  # type: ignore[arg-type]
    assert [kind for kind, _ in await events.new()] == ["turn.interrupted", "turn.answered", "turn.shortened"]


async def test_a_spoken_answer_takes_the_place_of_its_report(
    store: Store, owner: Owner, mac: str, events: Events
) -> None:
    inboxes, shard = Inboxes(store), store.keys.shard(mac)
    await inboxes.to_shard(shard, AnswerDoneEvent(device=mac, session="s1", turn="t1"))
    (entry,) = await inboxes.read_shards({shard: "0"})
    for _ in range(2):
        await SpokenAnswers(store).note(owner, mac, entry, SpokenData(turn="t1", spoken_ms=900))
    assert await events.new() == [("turn.spoken", {"turn": "t1", "spoken_ms": 900})]
    assert await inboxes.read_shards({shard: "0"}) == []


async def test_bootstraps_and_owners(store: Store, mac: str, events: Events) -> None:
    admissions = Admissions(store)
    owner, stranger = BootstrapAsker(mac, "owner", "192.0.2.1"), BootstrapAsker(mac, "stranger", "192.0.2.2")
    await admissions.decide("first", owner, {"fw": "2.5.1", "board": "bread"})
    for _ in range(3):
        await admissions.decide("first", stranger, {})
    told = await events.new()
    booted = {"firmware": "2.5.1", "board": "bread", "address": "192.0.2.1"}
    assert told[:2] == [("device.registered", {}), ("device.booted", booted)]
    # A stranger who asks again and again is told of once in a while.
    assert told[2:] == [("device.claimed", {"reason": "asked", "client": "stranger", "address": "192.0.2.2"})]
    for _ in range(2):
        await admissions.bind(mac, "stranger")
    for _ in range(2):
        await admissions.unbind(mac)
    assert await events.new() == [
        ("device.bound", {"how": "code", "client": "stranger"}),
        ("device.unbound", {}),
    ]
    for number in range(3):
        await admissions.decide("closed", BootstrapAsker(mac, f"c{number}", "192.0.2.3"), {})
    assert [kind for kind, _ in await events.new()] == []


async def test_read_events_are_removed_and_counted(store: Store, mac: str, events: Events) -> None:
    devices = Devices(store)
    for epoch in range(5):
        await devices.appear(mac, online=True, epoch=epoch + 1)
    entries = await events.outbox.read({events.shard: "0-0"}, 100, 0.01)
    assert [entry.kind for entry in entries] == [BEGUN, *["device.online"] * 5]
    counts = await events.outbox.trim({events.shard: entries[3].id})
    assert (counts[events.shard].added, counts[events.shard].waiting) == (6, 2)
    assert await events.outbox.read({events.shard: "0-0"}, 100, 0.01) == entries[4:]
    # Nobody else trims, so what the bound dropped is missing in the sum.
    assert await events.outbox.waiting([events.shard]) == [2]


async def test_a_stream_that_was_lost_begins_above_what_was_read(store: Store, mac: str, events: Events) -> None:
    (begun,) = await events.outbox.read({events.shard: "0-0"}, 100, 0.01)
    await store.client.delete(store.keys.events(events.shard))
    late = f"{begun.at + 3_600_000}-7"
    await events.outbox.want({events.shard: late})
    await events.outbox.want({events.shard: late})
    await Devices(store).appear(mac, online=True, epoch=1)
    assert [entry.kind for entry in await events.outbox.read({events.shard: late}, 100, 0.01)] == [
        BEGUN,
        "device.online",
    ]

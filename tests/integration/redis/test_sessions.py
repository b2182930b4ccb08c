import dataclasses
import time

import pytest
from msgspec.structs import replace

from fleet.adapters.redis.announcements.deliveries import Deliveries
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.registry import DeviceRegistry
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.keys import owed_apologies, prefix
from fleet.adapters.redis.sessions.endings import DueApology, Endings
from fleet.adapters.redis.sessions.sessions import Opened, SessionRecord, Sessions
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.errors import Fenced
from fleet.wire.identity import Username
from fleet.wire.mcp import ToolSpec
from fleet.wire.messages import AudioFormat
from fleet.wire.topics import shard_of
from tests.support.known_device import note_device

LIMIT = 240


@pytest.fixture
def session(mac: str) -> SessionRecord:
    return SessionRecord(
        "s1", mac, "xiaozhi", "e1", 7, "0" * 32, AudioFormat(16000, 60), AudioFormat(24000, 60), aec=True
    )


async def test_a_session_is_read_as_it_was_opened(store: Store, owner: Owner, session: SessionRecord) -> None:
    assert await Sessions(store).open(owner, session) == Opened("", "", tools_known=False)
    assert await Sessions(store).read(session.device) == session


async def test_a_new_session_takes_the_old_ones_place(store: Store, owner: Owner, session: SessionRecord) -> None:
    sessions = Sessions(store)
    await sessions.open(owner, session)
    opened = await sessions.open(owner, replace(session, id="s2", edge="e2"))
    assert (opened.old_session, opened.old_edge) == ("s1", "e1")
    assert await sessions.close(owner, session.device, "s1") == ""
    assert await sessions.close(owner, session.device, "s2") == "e2"
    assert await sessions.read(session.device) is None


async def test_the_mark_of_kept_announcements_moves_into_the_next_session_only(
    store: Store, owner: Owner, session: SessionRecord
) -> None:
    sessions, mac = Sessions(store), session.device
    deliveries = Deliveries(store)
    await deliveries.keep(owner, mac)
    with pytest.raises(Fenced):
        await deliveries.keep(dataclasses.replace(owner, fence="1"), mac)
    await sessions.open(owner, session)
    first = await sessions.read(mac)
    assert first is not None and abs(first.kept - time.time()) < LIMIT
    assert await store.client.hget(store.keys.device(mac), "kept") is None
    await sessions.close(owner, mac, session.id)
    await sessions.open(owner, replace(session, id="s2"))
    second = await sessions.read(mac)
    assert second is not None and second.kept == 0


async def test_who_lost_the_shard_can_write_nothing(store: Store, owner: Owner, session: SessionRecord) -> None:
    shard = shard_of(session.device, 16)
    await Leases(store, owner.worker, 60).release(shard)
    assert await Leases(store, "worker-2", 60).take(shard) is not None
    with pytest.raises(Fenced):
        await Sessions(store).open(owner, session)
    assert await Sessions(store).read(session.device) is None


async def test_tools_belong_to_the_connection_that_announced_them(
    store: Store, owner: Owner, session: SessionRecord
) -> None:
    devices, tools, mac = Devices(store), ToolLists(store), session.device
    assert not (await devices.appear(mac, online=True, epoch=5)).tools_known
    connection = (await devices.read(mac)).epoch
    await tools.write(owner, mac, [ToolSpec(name="self.x")], {"tep": connection, "board": "b", "fw": "2.4.2"})
    assert (await Sessions(store).open(owner, session)).tools_known
    assert [tool.name for tool in await tools.read(mac)] == ["self.x"]
    await store.client.delete(store.keys.tools(mac))
    assert not (await Sessions(store).open(owner, session)).tools_known
    assert not (await devices.appear(mac, online=True, epoch=6)).tools_known


async def test_old_presence_changes_nothing(store: Store, mac: str) -> None:
    devices = Devices(store)
    await devices.appear(mac, online=True, epoch=6)
    assert not (await devices.appear(mac, online=False, epoch=5)).applied
    assert (await devices.read(mac)).online


async def test_presence_of_who_lost_the_shard_changes_nothing(store: Store, owner: Owner, mac: str) -> None:
    devices = Devices(store)
    assert (await devices.appear(mac, online=True, epoch=6, owner=owner)).applied
    with pytest.raises(Fenced):
        await devices.appear(mac, online=False, epoch=6, owner=dataclasses.replace(owner, fence="1"))
    assert (await devices.read(mac)).online


async def test_who_connected_is_kept_for_that_connection_only(store: Store, mac: str) -> None:
    devices, roster = Devices(store), DeviceRegistry(store)

    async def connected() -> Username | None:
        [entry] = [entry for entry in await roster.entries() if entry.device.mac == mac]
        return entry.connected

    await note_device(store, mac, {"kid": "k9"})
    assert await connected() is None
    await devices.appear(mac, online=True, epoch=6, user="device.k1.first.3")
    assert await connected() == Username("device", "k1", "first", 3)
    await devices.appear(mac, online=False, epoch=6)
    await devices.appear(mac, online=True, epoch=5, user="device.k1.first.9")
    assert await connected() == Username("device", "k1", "first", 3), "also when it has gone, and whoever came before"
    await devices.appear(mac, online=True, epoch=7)
    assert await connected() is None, "a broker that does not say it writes nothing"
    await devices.appear(mac, online=True, epoch=8, user="device.k1")
    assert await connected() == Username("device", "k1")


async def test_devices_that_connected_before_the_broker_began_are_offline(store: Store, owner: Owner, mac: str) -> None:
    devices, shard = Devices(store), shard_of(mac, 16)
    await devices.appear(mac, online=True, epoch=6, owner=owner)
    assert await devices.outdate(owner, shard, 6, 10) == []
    assert await devices.outdate(owner, shard, 7, 10) == [(mac, "")]
    assert not (await devices.read(mac)).online
    assert await devices.outdate(owner, shard, 7, 10) == []
    await devices.appear(mac, online=True, epoch=8, owner=owner)
    await devices.appear(mac, online=False, epoch=8, owner=owner)
    assert await devices.outdate(owner, shard, 9, 10) == []


async def test_sessions_of_a_dead_edge_are_found(store: Store, owner: Owner, session: SessionRecord) -> None:
    sessions, shard, mac = Sessions(store), shard_of(session.device, 16), session.device
    await sessions.open(owner, session)
    assert await sessions.of_dead_edges(owner, shard, ["e1", "e2"], 10) == []
    assert await sessions.of_dead_edges(owner, shard, ["e2"], 10) == [(mac, "s1")]
    await sessions.open(owner, replace(session, id="s2", edge="e2"))
    assert await sessions.of_dead_edges(owner, shard, ["e2"], 10) == []
    assert await sessions.of_dead_edges(owner, shard, ["e1"], 10) == [(mac, "s2")]
    await sessions.close(owner, mac, "s2")
    assert await sessions.of_dead_edges(owner, shard, [], 10) == []
    assert await store.client.exists(store.keys.session_edges(shard)) == 0


async def test_an_apology_is_found_whether_or_not_the_edge_is_dead(
    store: Store, owner: Owner, session: SessionRecord
) -> None:
    devices, sessions, shard, mac = Devices(store), Sessions(store), shard_of(session.device, 16), session.device
    await devices.appear(mac, online=True, epoch=5)
    await sessions.open(owner, session)
    await sessions.close(owner, mac, "s1", "leaving", goodbye_sent=True, apology="interrupted")

    async def goodbye_was_sent(seconds: float) -> None:
        told = float(await store.client.hget(store.keys.device(mac), "ga") or 0) / 1000
        assert abs(told - time.time()) < LIMIT
        await store.client.hset(store.keys.device(mac), "ga", str(int((time.time() - seconds) * 1000)))

    await goodbye_was_sent(-LIMIT / 2)
    assert await sessions.of_dead_edges(owner, shard, ["e1"], 10) == [], "the device may still read the goodbye"
    await goodbye_was_sent(1.0)
    assert await sessions.of_dead_edges(owner, shard, ["e1"], 10) == [(mac, "")]
    assert 120 < await store.client.ttl(owed_apologies(shard)) <= 240
    await Endings(store).mark_shown(owner, mac, "5")
    assert await sessions.of_dead_edges(owner, shard, ["e1"], 10) == []
    await devices.appear(mac, online=True, epoch=6)
    await goodbye_was_sent(1.0)
    assert await sessions.of_dead_edges(owner, shard, ["e1"], 10) == [(mac, "")], "a new connection cleared the screen"
    await sessions.open(owner, replace(session, id="s2"))
    assert await sessions.of_dead_edges(owner, shard, ["e1"], 10) == []
    assert await store.client.exists(owed_apologies(shard)) == 0


async def test_an_expired_session_leaves_no_orphan(store: Store, owner: Owner, session: SessionRecord) -> None:
    sessions, shard = Sessions(store), shard_of(session.device, 16)
    await sessions.open(owner, session)
    await store.client.delete(store.keys.session(session.device))
    for _ in range(2):
        assert await sessions.of_dead_edges(owner, shard, [], 10) == []
    assert await store.client.exists(store.keys.session_edges(shard)) == 0


async def test_a_session_that_went_on_at_another_edge_is_none_of_the_dead_one(
    store: Store, owner: Owner, session: SessionRecord
) -> None:
    sessions, shard, mac = Sessions(store), shard_of(session.device, 16), session.device
    await sessions.open(owner, session)
    index = f"{prefix(shard)}e:e1"
    assert await store.client.exists(index) == 1
    await sessions.open(owner, replace(session, id="s2", edge="e2"))
    assert await store.client.exists(index) == 0
    await store.client.sadd(index, mac)
    assert await sessions.of_dead_edges(owner, shard, ["e2"], 10) == []
    assert await store.client.exists(index) == 0, "what an interrupted hello left is tidied"


async def test_a_dialect_belongs_to_the_connection_in_which_the_tools_were_made_known(
    store: Store, owner: Owner, session: SessionRecord
) -> None:
    devices, sessions, mac = Devices(store), Sessions(store), session.device
    await devices.appear(mac, online=True, epoch=5)
    await ToolLists(store).register(owner, mac, "other", [ToolSpec(name="self.x")])
    await sessions.open(owner, session)
    assert [record.dialect for record in (await sessions.read(mac), await devices.read(mac)) if record] == ["other"] * 2
    await devices.appear(mac, online=True, epoch=6)
    await sessions.open(owner, session)
    assert [record.dialect for record in (await sessions.read(mac), await devices.read(mac)) if record] == [
        "xiaozhi"
    ] * 2


async def test_an_apology_is_due_once_in_a_connection(store: Store, owner: Owner, session: SessionRecord) -> None:
    devices, endings, mac = Devices(store), Endings(store), session.device
    await devices.appear(mac, online=True, epoch=5)
    await Sessions(store).open(owner, session)
    await Sessions(store).close(owner, mac, session.id, apology="interrupted")
    assert await endings.due(mac) == DueApology("interrupted", "", "5")
    await endings.mark_shown(owner, mac, "5")
    assert await endings.due(mac) is None
    await devices.appear(mac, online=True, epoch=6)
    assert await endings.due(mac) is None, "the goodbye comes first, once more"
    await store.client.hset(store.keys.device(mac), "ga", "0")
    assert await endings.due(mac) == DueApology("interrupted", "", "6")
    await devices.appear(mac, online=False, epoch=6)
    assert await endings.due(mac) is None

from dataclasses import replace

import pytest

from fleet.errors import Fenced
from fleet.store.connect import Store
from fleet.store.devices import Devices
from fleet.store.leases import Leases
from fleet.store.owner import Owner
from fleet.store.sessions import Opened, Session, Sessions
from fleet.store.tools import ToolLists
from fleet.wire.mcp import ToolSpec
from fleet.wire.topics import shard_of
from fleet.wire.words import AudioFormat


@pytest.fixture
def session(mac: str) -> Session:
    return Session("s1", mac, "xiaozhi", "e1", 7, "0" * 32, AudioFormat(16000, 60), AudioFormat(24000, 60), aec=True)


async def test_a_session_is_read_as_it_was_opened(store: Store, owner: Owner, session: Session) -> None:
    assert await Sessions(store).open(owner, session) == Opened("", "", tools_known=False)
    assert await Sessions(store).read(session.device) == session


async def test_a_new_session_takes_the_old_ones_place(store: Store, owner: Owner, session: Session) -> None:
    sessions = Sessions(store)
    await sessions.open(owner, session)
    opened = await sessions.open(owner, replace(session, id="s2", edge="e2"))
    assert (opened.old_session, opened.old_edge) == ("s1", "e1")
    assert await sessions.close(owner, session.device, "s1") == ""
    assert await sessions.close(owner, session.device, "s2") == "e2"
    assert await sessions.read(session.device) is None


async def test_who_lost_the_shard_can_write_nothing(store: Store, owner: Owner, session: Session) -> None:
    shard = shard_of(session.device, 16)
    await Leases(store, owner.worker, 60).release(shard)
    assert await Leases(store, "worker-2", 60).take(shard) is not None
    with pytest.raises(Fenced):
        await Sessions(store).open(owner, session)
    assert await Sessions(store).read(session.device) is None


async def test_tools_belong_to_the_connection_that_announced_them(store: Store, owner: Owner, session: Session) -> None:
    devices, tools, mac = Devices(store), ToolLists(store), session.device
    assert not (await devices.appear(mac, online=True, epoch=5)).tools_known
    await tools.write(mac, [ToolSpec(name="self.x")], {"tep": await tools.epoch(mac), "board": "b", "fw": "2.4.2"})
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

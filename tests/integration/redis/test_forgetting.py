"""What is left of a device that was forgotten, read from all keys of Redis, Valkey and a Cluster."""

from typing import Any

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.access.decisions import Asker, Decisions
from fleet.adapters.redis.access.revocation_watch import Access, Change, RevocationWatch
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.debugging import DebuggedDevices
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.forgetting import erase
from fleet.adapters.redis.devices.reports import Reports
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.redis.sessions.calls import CallTable
from fleet.adapters.redis.sessions.personas import Personas
from fleet.adapters.redis.sessions.replies import Replies
from fleet.adapters.redis.sessions.sessions import SessionRecord, Sessions
from fleet.adapters.redis.shards.leases import Leases
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.server_tools import Persona
from fleet.wire.messages import AudioFormat
from fleet.wire.reminders import Reminder
from fleet.wire.topics import shard_of

ADDRESS = "192.0.2.7"


async def live(store: Store, owner: Owner, mac: str) -> None:
    """Let a device do everything that leaves something in Redis."""
    await Admissions(store).decide("first", BootstrapAsker(mac, "c1", ADDRESS), {"board": "b"})
    await Admissions(store).decide("code", BootstrapAsker(mac, "c2", ADDRESS), {"board": "b"})
    await Claims(store).note(mac, ADDRESS)
    await Activations(store).begin(mac, "c2", "", with_code=True)
    [claim] = await Decisions(store).claims_of(mac)
    await Decisions(store).refuse(claim)
    await Admissions(store).decide("code", BootstrapAsker(mac, "c3", ADDRESS), {"board": "b"})
    await Claims(store).note(mac, ADDRESS)
    await TraceStore(store).record_refusal(mac, "not bound")
    await Devices(store).appear(mac, online=True, epoch=5, user="device.k1.first.1", owner=owner)
    await ToolLists(store).write(owner, mac, b"[]", {"tep": "5"})
    audio = AudioFormat(16_000, 60)
    await Sessions(store).open(owner, SessionRecord("s1", mac, "xiaozhi", "e1", 1, "00" * 16, audio, audio))
    await CallTable(store).begin(mac, "turn:call", 60)
    await Replies(store).expect(mac, "t1")
    await Reports(store).add(owner, mac, "it fell")
    await Personas(store).keep(owner, mac, Persona("en", "kind"))
    await store.client.rpush(store.keys.memory(mac), "likes tea")
    await DebuggedDevices(store).set(mac, 60)
    await Decisions(store).bind(Asker(mac, "c4"), 0)
    await Decisions(store).revoke(mac)
    await Decisions(store).unrevoke(mac)
    for name, due in (("r1", 1), ("r2", 4_000_000_000_000)):
        await Reminders(store).add(owner, mac, Reminder(id=name, text="Tea.", due=due))
    assert len((await Reminders(store).claim(owner, store.keys.shard(mac), 10, first=True)).claimed) == 1
    await Devices(store).appear(mac, online=False, epoch=6, owner=owner)
    await TraceStore(store).note(mac, "end", "s1")


async def content(store: Store) -> list[str]:
    """Return everything in Redis as texts: keys, members and values."""
    found: list[str] = []
    reads: dict[str, tuple[Any, ...]] = {
        "hash": ("HGETALL",),
        "zset": ("ZRANGE", 0, -1),
        "set": ("SMEMBERS",),
        "list": ("LRANGE", 0, -1),
        "stream": ("XRANGE", "-", "+"),
        "string": ("GET",),
    }
    for name in await store.scan("*"):
        kind = await store.client.type(name)
        if kind == "none":
            continue  # Its time has ended since the scan.
        command, *words = reads[kind]
        found.append(f"{name} {await store.client.execute_command(command, name, *words)}")
    return found


async def test_an_erased_device_leaves_nothing_in_redis(server_store: Store, mac: str) -> None:
    store, other = server_store, "02:00:00:00:00:99"
    owner = await Leases(store, "worker-1", 60).take(shard_of(mac, store.keys.shards))
    assert owner is not None
    await Admissions(store).decide("first", BootstrapAsker(other, "c1", ADDRESS), {"board": "b"})
    before = await content(store)
    await live(store, owner, mac)
    there = [text for text in await content(store) if mac in text]
    assert len(there) > 18, there
    await erase(store, mac)
    assert [text for text in await content(store) if mac in text] == []
    assert {text.split(" ")[0] for text in before} <= set(await store.scan("*")), "others have lost something"


async def test_whoever_watches_the_list_of_revoked_devices_notices(server_store: Store, mac: str) -> None:
    seen: list[Access] = []

    async def take(access: Access, _: Change) -> None:
        seen.append(access)

    watch = RevocationWatch(Revocations(server_store), take)
    await Decisions(server_store).revoke(mac)
    await Decisions(server_store).revoke("02:00:00:00:00:99")
    await watch.look()
    await Revocations(server_store).forget(mac)
    await watch.look()
    assert mac in seen[0].revoked and mac in seen[0].minima.macs
    assert seen[1].revoked == {"02:00:00:00:00:99"} and mac not in seen[1].minima.macs
    await Decisions(server_store).revoke(mac)
    await watch.look()
    assert mac in seen[2].revoked

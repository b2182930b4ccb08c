"""What time does to the data of a device; tests/integration/redis/test_traces.py has the rest."""

import asyncio

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.forgetting import forget
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.redis.devices.view import read_device_view
from fleet.adapters.redis.keys import EDGE_SECONDS
from fleet.adapters.redis.sessions.sessions import SessionRecord, Sessions
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.messages import AudioFormat
from tests.support.known_device import note_device
from tests.support.virtual_time import elapse

MAC = "aa:bb:cc:dd:ee:ff"


async def seconds_of(work: object) -> float:
    clock = asyncio.get_running_loop().time
    begun = clock()
    await work  # type: ignore[misc]
    return clock() - begun


async def test_whether_the_edge_of_a_session_lives_is_seen(store: Store, owner: Owner) -> None:
    await Edges(store).announce(EdgeRecord("e1", "h", 1, 0))
    await Devices(store).appear(MAC, online=True, epoch=5, owner=owner)
    assert not (await read_device_view(store, MAC)).edge_lives, "it has no session"
    audio = AudioFormat(16_000, 60)
    await Sessions(store).open(owner, SessionRecord("s1", MAC, "xiaozhi", "e1", 1, "00" * 16, audio, audio))
    assert (await read_device_view(store, MAC)).edge_lives
    await elapse(EDGE_SECONDS + 1)
    assert not (await read_device_view(store, MAC)).edge_lives


async def test_the_last_refusal_of_a_bootstrap_is_seen(store: Store) -> None:
    traces = TraceStore(store)
    await traces.record_refusal(MAC, "revoked")
    known = await read_device_view(store, MAC)
    assert known.refusal and known.refusal.words == "revoked" and known.refusal.at > 1_700_000_000
    assert not known.known and known.at("hello") == 0 and known.bootstrap is None


async def test_who_is_forgotten_leaves_no_key(store: Store, owner: Owner) -> None:
    await note_device(store, MAC, {"board": "b"})
    await Admissions(store).bind(MAC, "client")
    await Devices(store).appear(MAC, online=True, epoch=5, owner=owner)
    await Devices(store).appear(MAC, online=False, epoch=6, owner=owner)
    assert await store.scan(f"*{MAC}*")
    assert await seconds_of(forget(store, [MAC])) < 1
    assert await store.scan(f"*{MAC}*") == []
    assert not (await Admissions(store).read(MAC)).bound


async def test_what_is_still_to_be_written_of_a_device_is_waited_for_and_not_for_ever(
    store: Store, owner: Owner
) -> None:
    await Devices(store).appear(MAC, online=True, epoch=5, owner=owner)
    async with asyncio.TaskGroup() as group:
        forgotten = group.create_task(seconds_of(forget(store, [MAC])))
        await elapse(1)
        await Devices(store).appear(MAC, online=False, epoch=6, owner=owner)
    assert 1 <= forgotten.result() < 1.5
    await Devices(store).appear(MAC, online=True, epoch=7, owner=owner)
    assert 2 < await seconds_of(forget(store, [MAC])) < 5
    assert 0.2 < await seconds_of(forget(store, [MAC])) < 1, "it is unknown"

"""Workers that die, freeze, end and join, each a process of its own.

A lease that no test outlives shows that a takeover does not wait for its end.
"""

import asyncio
import signal

from tests.integration.worker.scripted import Device
from tests.support.pings import ping_all
from tests.support.role_process import started
from tests.support.role_site import RoleSite

LONG = "300"


async def spread(site: RoleSite, *wanted: int) -> None:
    await asyncio.to_thread(site.until_spread, *wanted)


async def heard(site: RoleSite, devices: list[Device]) -> None:
    await asyncio.to_thread(site.until_heard, [device.mac for device in devices])


async def test_shards_of_a_killed_worker_are_taken_at_once(site: RoleSite, devices: list[Device]) -> None:
    first = site.worker(FLEET_LEASE_SECONDS=LONG)
    await spread(site, 16)
    site.worker(FLEET_LEASE_SECONDS=LONG)
    await spread(site, 8, 8)
    first.kill()
    await ping_all(devices, "after the kill")
    assert site.spread() == [16]


async def test_a_frozen_worker_does_nothing_when_it_wakes_and_joins_again(
    site: RoleSite, devices: list[Device]
) -> None:
    frozen = site.worker(FLEET_LEASE_SECONDS="8")
    await spread(site, 16)
    await heard(site, devices)
    await ping_all(devices, "before")
    frozen.send(signal.SIGSTOP)
    site.worker(FLEET_LEASE_SECONDS="8")
    # Part of it waits in the frozen worker's socket.
    await ping_all(devices, "frozen")
    assert site.spread() == [16]
    frozen.send(signal.SIGCONT)
    await spread(site, 8, 8)
    for device in devices:
        await device.say({"type": "listen", "state": "start", "mode": "auto", "session_id": "last"})
        assert (await device.hear_type("goodbye"))["session_id"] == "last"  # so "frozen" was answered once
    # More where it lost some on a busy machine before, and took them again.
    assert frozen.count("lost a shard") >= 16


async def test_a_worker_joins_and_ends_without_a_gap(site: RoleSite, devices: list[Device]) -> None:
    first = site.worker(FLEET_LEASE_SECONDS=LONG)
    await spread(site, 16)
    site.worker(FLEET_LEASE_SECONDS=LONG)
    await spread(site, 8, 8)
    await ping_all(devices, "shared")
    first.send(signal.SIGTERM)
    await ping_all(devices, "ending")
    assert await asyncio.to_thread(first.wait) == 0
    assert site.spread() == [16]
    assert first.count("handed a shard over") == 8 + 8
    await ping_all(devices, "ended")


async def test_the_last_worker_leaves_everything_to_the_next(site: RoleSite, devices: list[Device]) -> None:
    last = site.worker(FLEET_LEASE_SECONDS=LONG)
    await spread(site, 16)
    await heard(site, devices)
    last.send(signal.SIGTERM)
    assert await asyncio.to_thread(last.wait) == 0
    assert site.spread() == []
    async with asyncio.TaskGroup() as group:
        group.create_task(ping_all(devices, "kept by the broker"))
        site.worker(FLEET_LEASE_SECONDS=LONG)


async def test_a_worker_without_a_broker_ends_when_it_is_told_to(site: RoleSite) -> None:
    site.broker.kill()
    lonely = site.worker()
    await asyncio.to_thread(started, lonely, "will try again")
    lonely.send(signal.SIGTERM)
    assert await asyncio.to_thread(lonely.wait) == 0

"""The broker or Redis restarts under running workers and edges: everything goes on by itself."""

import asyncio

from tests.integration.roles.test_edges import greet, two_edges
from tests.integration.worker.scripted import Device
from tests.support.pings import ping_all, ping_until_answered
from tests.support.role_site import RoleSite
from tests.support.until import until


async def again(site: RoleSite, devices: list[Device]) -> list[Device]:
    """Let the devices connect anew, as their firmware does."""
    for device in devices:
        await device.close()
    return [await Device.connect(site.broker, site.keys, device.mac) for device in devices]


async def test_everything_goes_on_after_the_broker_was_killed(site: RoleSite, devices: list[Device]) -> None:
    await two_edges(site)
    site.worker()
    await asyncio.to_thread(site.until_spread, 8, 8)
    await asyncio.to_thread(site.until_heard, [device.mac for device in devices])
    before = await greet(devices[0])
    site.broker.kill()
    await asyncio.to_thread(site.broker.start)
    *returning, gone = devices
    back = await again(site, returning)
    try:
        async with asyncio.TaskGroup() as group:
            for device in back:
                group.create_task(ping_until_answered(device))
        assert (await greet(back[0]))["session_id"] != before["session_id"]
        await asyncio.to_thread(site.until_spread, 8, 8)
        assert site.edges() == 2
        assert site.online(back[0].mac)
        await asyncio.to_thread(until, lambda: not site.online(gone.mac))
    finally:
        for device in back:
            await device.close()


async def test_everything_goes_on_after_redis_was_killed(site: RoleSite, devices: list[Device]) -> None:
    await two_edges(site)
    before = await greet(devices[0])
    site.redis.kill()
    await asyncio.to_thread(site.redis.start)
    await ping_all(devices, "after")
    # The session lives on: what belongs to it is no stranger.
    await devices[0].say({"type": "listen", "state": "start", "mode": "auto", "session_id": before["session_id"]})
    await devices[0].say({"type": "listen", "state": "start", "mode": "auto", "session_id": "stale"})
    assert (await devices[0].hear_type("goodbye"))["session_id"] == "stale"
    await asyncio.to_thread(until, lambda: site.edges() == 2)
    assert (await greet(devices[1]))["udp"]["server"] == "127.0.0.1"


async def test_words_said_while_redis_is_away_for_longer_than_a_lease_are_answered_after_it(
    site: RoleSite, devices: list[Device]
) -> None:
    first = site.worker(FLEET_LEASE_SECONDS="4")
    await asyncio.to_thread(site.until_spread, 16)
    await asyncio.to_thread(site.until_heard, [device.mac for device in devices])
    await ping_all(devices, "before")
    site.redis.kill()
    async with asyncio.TaskGroup() as group:
        answered = group.create_task(ping_all(devices, "meanwhile"))
        # More where it lost some on a busy machine before, and has them again.
        await asyncio.to_thread(until, lambda: first.count("lost a shard") >= 16)
        await asyncio.to_thread(site.redis.start)
    assert len(answered.result()) == 16
    assert site.spread() == [16]

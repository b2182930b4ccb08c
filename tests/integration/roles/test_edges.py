"""Edges that die and end, each a process of its own; the sessions' devices must not wait for an answer for ever."""

import asyncio
import signal
from typing import Any

import redis

from tests.integration.worker.scene import HELLO
from tests.integration.worker.scripted import Device
from tests.support.role_process import RoleProcess
from tests.support.role_site import RoleSite
from tests.support.until import until

STANDBY = {"FLEET_DRAIN_SECONDS": "3", "FLEET_IDLE_SECONDS": "110"}


async def two_edges(site: RoleSite) -> list[RoleProcess]:
    """Start a worker and two edges; return the edges, once the worker can give sessions to both."""
    site.worker()
    edges = [site.edge(mortal=True, **STANDBY), site.edge(**STANDBY)]
    await asyncio.to_thread(site.until_spread, 16)
    await asyncio.to_thread(until, lambda: site.edges() == 2)
    return edges


def let_expire(site: RoleSite, dead: RoleProcess) -> None:
    """Let what Redis has of an edge that was killed expire now, and not as late as a busy machine needs."""
    with redis.Redis.from_url(site.redis.url, decode_responses=True) as client:
        [name] = [one for one in client.scan_iter("edge:*") if client.hget(one, "port") == str(dead.udp_port)]
        assert client.ttl(name) > 0
        client.pexpire(name, 1)


async def greet(device: Device) -> dict[str, Any]:
    """Open a session; return the worker's answer."""
    await device.say(HELLO)
    return await device.hear_type("hello")


async def until_on(device: Device, edge: RoleProcess) -> str:
    """Open sessions until one is on this edge; return its id."""
    async with asyncio.timeout(240):
        while (welcome := await greet(device))["udp"]["port"] != edge.udp_port:
            await asyncio.sleep(0.1)
    return str(welcome["session_id"])


async def test_a_killed_edges_sessions_end_with_their_own_ids_and_begin_anew_elsewhere(
    site: RoleSite, devices: list[Device]
) -> None:
    dead, alive = await two_edges(site)
    sessions = [await until_on(device, dead) for device in devices[:4]]
    other = await until_on(devices[4], alive)
    # A session that nobody uses ends after 15 seconds, which the rest may take on a busy machine.
    await devices[4].say({"type": "listen", "state": "start", "mode": "auto", "session_id": other})
    dead.kill()
    await asyncio.to_thread(let_expire, site, dead)
    async with asyncio.timeout(240):
        for device, session in zip(devices, sessions, strict=False):
            stop = await _until_told(device, "tts")
            assert (stop["state"], stop["session_id"]) == ("stop", session)
            assert (await device.hear_type("goodbye"))["session_id"] == session
    for device in devices[:4]:
        assert (await greet(device))["udp"]["port"] == alive.udp_port
    # Who was elsewhere has noticed nothing.
    await devices[4].say({"type": "listen", "state": "start", "mode": "auto", "session_id": "probe"})
    assert (await devices[4].hear_type("goodbye"))["session_id"] == "probe"
    assert other


async def test_an_edge_that_is_told_to_end_lets_its_devices_go_to_another(
    site: RoleSite, devices: list[Device]
) -> None:
    leaving, staying = await two_edges(site)
    sessions = [await until_on(device, leaving) for device in devices[:4]]
    leaving.send(signal.SIGTERM)
    for device, session in zip(devices, sessions, strict=False):
        assert (await device.hear_type("goodbye"))["session_id"] == session
    assert await asyncio.to_thread(leaving.wait) == 0
    # It has said so before it ended: nobody is sent to where nobody is.
    assert await asyncio.to_thread(site.edges) == 1
    for device in devices[:4]:
        assert (await greet(device))["udp"]["port"] == staying.udp_port
    assert "edge" in {line.get("role") for line in leaving.lines if line["message"] == "leaving"}


async def test_without_an_edge_a_hello_is_refused_at_once(site: RoleSite, devices: list[Device]) -> None:
    site.worker()
    only = site.edge(**STANDBY)
    await asyncio.to_thread(site.until_spread, 16)
    await asyncio.to_thread(until, lambda: site.edges() == 1)
    session = await until_on(devices[0], only)
    only.send(signal.SIGTERM)
    assert (await devices[0].hear_type("goodbye"))["session_id"] == session
    async with asyncio.timeout(240):
        while (await greet(devices[0]))["udp"]["port"] == only.udp_port:
            await asyncio.sleep(0.1)
    assert (await devices[0].hear_type("alert"))["status"] == "Error"


async def _until_told(device: Device, kind: str) -> dict[str, Any]:
    """Skip what a device is told when it connects."""
    while not (message := await device.hear_type(kind))["session_id"]:
        pass
    return message

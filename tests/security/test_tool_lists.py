"""Strangers who fill the memory of a worker with lists of tools, on the broker with the plugin."""

import asyncio
from pathlib import Path

import pytest
import redis

from fleet.roles.worker.sessions.tool_list_budget import LARGEST_LISTS
from fleet.wire.topics import shard_of
from tests.integration.worker.scripted import Device
from tests.support.endless_lister import EndlessLister
from tests.support.ports import LOOPBACK, free_port
from tests.support.role_site import SHARDS, RoleSite, role_site
from tests.support.scraped import scrape

ATTACKERS = 260
MEGABYTE = 1024
LARGEST_RISE = 100
"""MB. It was 1,345 with lists of any size."""
TOOL = {"name": "self.lamp.toggle", "description": "", "inputSchema": {"type": "object", "properties": {}}}


def memory(pid: int) -> int:
    """Return the largest resident memory of a process so far, in MB."""
    [line] = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM:")]
    return int(line.split()[1]) // MEGABYTE


def fences(site: RoleSite) -> list[str]:
    """Return under which number each shard is owned: it rises whenever a lease is lost."""
    with redis.Redis.from_url(site.redis.url, decode_responses=True) as client:
        return [str(client.hget(f"f:{{{shard}}}:own", "f")) for shard in range(SHARDS)]


def known_tools(site: RoleSite, mac: str) -> bool:
    with redis.Redis.from_url(site.redis.url) as client:
        return bool(client.exists(f"f:{{{shard_of(mac, SHARDS)}}}:tools:{mac}"))


def boot(site: RoleSite, *macs: str) -> None:
    """Write down what bootstrap does of xiaozhi firmware: others are asked for their tools at their first hello."""
    with redis.Redis.from_url(site.redis.url) as client:
        for mac in macs:
            client.hset(f"f:{{{shard_of(mac, SHARDS)}}}:d:{mac}", "dialect", "xiaozhi")


async def introduce(site: RoleSite, mac: str) -> None:
    """Fail unless a normal device is asked for its tools, and they are kept."""
    await asyncio.to_thread(boot, site, mac)
    normal = await Device.connect(site.broker, site.keys, mac)
    initialize = await normal.hear_request("initialize")
    await normal.answer(initialize, result={"serverInfo": {"name": "board", "version": "2.4.2"}})
    await normal.hear_request("notifications/initialized")
    await normal.answer(await normal.hear_request("tools/list"), result={"tools": [TOOL]})
    async with asyncio.timeout(240):
        while not await asyncio.to_thread(known_tools, site, mac):
            await asyncio.sleep(0.05)
    await normal.close()


async def attack(site: RoleSite, **how: int) -> list[EndlessLister]:
    attackers = [
        EndlessLister(f"0a:00:00:02:{number >> 8:02x}:{number & 255:02x}", **how) for number in range(ATTACKERS)
    ]
    await asyncio.to_thread(boot, site, *(attacker.mac for attacker in attackers))
    for attacker in attackers:
        await attacker.join(site.broker, site.keys)
    return attackers


@pytest.mark.parametrize(
    "how", [{}, {"tools": 1, "size": 7000, "most": 8}], ids=["pages beyond all bounds", "pages within the bounds"]
)
async def test_lists_without_an_end_fill_no_memory_and_cost_no_shard(tmp_path: Path, how: dict[str, int]) -> None:
    with role_site(tmp_path) as site:
        port = free_port()
        worker = site.worker(
            FLEET_LEASE_SECONDS="20",
            FLEET_LOG_LEVEL="info",
            FLEET_METRICS_PORT=str(port),
            FLEET_METRICS_HOST=LOOPBACK,
        )
        await asyncio.to_thread(site.until_spread, SHARDS)
        await introduce(site, "02:00:00:00:00:01")
        before, owned = memory(worker.pid), fences(site)
        attackers = await attack(site, **how)
        await introduce(site, "02:00:00:00:00:02")
        async with asyncio.timeout(240):
            while any(not attacker.answered for attacker in attackers):
                await asyncio.sleep(0.1)
        await introduce(site, "02:00:00:00:00:03")
        for attacker in attackers:
            attacker.close()
        await introduce(site, "02:00:00:00:00:04")
        assert memory(worker.pid) - before < LARGEST_RISE
        assert fences(site) == owned
        told = await asyncio.to_thread(scrape, port)
        assert told.value("fleet_bound_limit", bound="tool_lists_bytes") == LARGEST_LISTS
        assert told.value("fleet_bound_used", bound="tool_lists_bytes") <= LARGEST_LISTS
        refused = [f"tools_{fault}" for fault in ("unreadable", "page_too_long", "too_many_lists", "broken_off")]
        assert sum(told.value("fleet_worker_refusals_total", reason=reason) for reason in refused) > 0
        assert worker.code is None

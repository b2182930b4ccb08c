"""What devices say while a worker is killed: nothing is lost, and each device is served in order."""

import asyncio
import signal
import statistics

import pytest

from fleet.wire.topics import shard_of
from tests.support.herd import Herd
from tests.support.role_site import SHARDS, RoleSite, macs

RATE = 200.0
"""Words a second."""
OUT_OF_TIME = ("messages left unhandled", "the broker did not close after DISCONNECT")
"""What a worker that ends says when a second was not enough, as on a busy machine: then words may be answered again."""
BURST = 200
"""Devices that speak at once just before the kill, so that it leaves messages unacknowledged."""


async def talk_through(site: RoleSite, number: signal.Signals, devices: int, seconds: float) -> tuple[int, int]:
    """Let one of two workers be sent a signal while devices talk.

    Return how many words were answered again, and how often the worker gave something up for lack of time.
    """
    victim = site.worker(FLEET_LEASE_SECONDS="300", FLEET_LOG_LEVEL="info")
    await asyncio.to_thread(site.until_spread, SHARDS)
    mortal = set(site.owners().values())
    site.worker(FLEET_LEASE_SECONDS="300", FLEET_LOG_LEVEL="info")
    await asyncio.to_thread(site.until_spread, SHARDS // 2, SHARDS // 2)
    orphaned = {shard for shard, owner in site.owners().items() if owner in mortal}
    herd = Herd(site.broker, site.keys, macs(devices))
    try:
        await herd.join()
        # Every shard has been subscribed to: what is said before is lost.
        await asyncio.to_thread(site.until_heard, [member.mac for member in herd.members])
        await herd.talk(RATE, seconds / 2)
        herd.shout(BURST)
        await asyncio.sleep(0.03)  # so that the end falls into the work on these
        victim.send(number)
        await herd.talk(RATE, seconds / 2)
        await herd.until_answered()
        await asyncio.to_thread(victim.wait)
        return check(herd, orphaned), sum(map(victim.count, OUT_OF_TIME))
    finally:
        herd.close()


def check(herd: Herd, orphaned: set[int]) -> int:
    members = [member for member in herd.members if member.said]
    assert not any(member.lost for member in members)
    assert [member.mac for member in members if member.fresh != list(member.said)] == []
    words = sum(len(member.said) for member in members)
    again = sum(len(member.heard) - len(member.fresh) for member in members)
    touched = [wait for member in members if shard_of(member.mac, SHARDS) in orphaned for wait in member.waits]
    others = [wait for member in members if shard_of(member.mac, SHARDS) not in orphaned for wait in member.waits]
    assert touched
    print(
        f"{len(herd.members)} devices, {words} words, {again} answered again; longest wait at the killed worker "
        f"{max(touched):.3f} s, at the other {max(others):.3f} s; median {statistics.median(touched + others):.4f} s"
    )
    return again


async def test_no_word_is_lost_and_all_are_answered_in_order_when_a_worker_is_killed(site: RoleSite) -> None:
    await talk_through(site, signal.SIGKILL, devices=200, seconds=4)


async def test_no_word_is_lost_or_answered_twice_when_a_worker_is_told_to_end(site: RoleSite) -> None:
    again, unfinished = await talk_through(site, signal.SIGTERM, devices=200, seconds=4)
    assert again == 0 or unfinished


@pytest.mark.slow
async def test_two_thousand_devices_hardly_notice_that_a_worker_is_killed(site: RoleSite) -> None:
    await talk_through(site, signal.SIGKILL, devices=2000, seconds=30)

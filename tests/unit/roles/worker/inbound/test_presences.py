import asyncio
import json

import pytest

from fleet.ground.metrics import broker as metrics
from fleet.ground.tasks import Ended
from fleet.roles.worker.inbound.presences import Presences
from fleet.roles.worker.ownership.waiting_presence import WaitingPresence
from fleet.wire.presence import Presence

MAC, OTHER = "aa:bb:cc:dd:ee:ff", "aa:bb:cc:dd:ee:00"


class Arrivals:
    """Presences as they arrive; what is recorded of them."""

    def __init__(self, most: int) -> None:
        self.presences = Presences(most)
        self.recorded: list[Presence | None] = []
        self.going_on = asyncio.Event()

    def arrive(self, mac: str, epoch: int, *, online: bool = True) -> tuple[WaitingPresence, Ended]:
        payload, ended = json.dumps({"online": online, "epoch": epoch}).encode(), asyncio.Future[Exception | None]()
        return self.presences.expect(mac, payload, ended), ended

    async def record(self, arrived: tuple[WaitingPresence, Ended]) -> None:
        waiting, ended = arrived
        async with self.presences.place(waiting) as message:
            if message is not None:
                await self.going_on.wait()
            self.recorded.append(message)
        if not ended.done():
            ended.set_result(None)


@pytest.fixture
def replaced() -> int:
    return metrics.presences_replaced.read()[()]


async def test_a_newer_presence_ends_an_older_one_that_waits(replaced: int) -> None:
    site = Arrivals(1)
    older, newer = site.arrive(MAC, 1), site.arrive(MAC, 1, online=False)
    assert older[1].done() and not newer[1].done()
    assert metrics.presences_replaced.read()[()] - replaced == 1
    site.going_on.set()
    await site.record(newer)
    assert site.recorded == [Presence(online=False, epoch=1)]


async def test_what_is_being_recorded_is_not_replaced_and_what_waits_for_a_place_is(replaced: int) -> None:
    site = Arrivals(1)
    async with asyncio.TaskGroup() as group:
        first = site.arrive(MAC, 1)
        group.create_task(site.record(first))
        waiting = site.arrive(OTHER, 1)
        group.create_task(site.record(waiting))
        await asyncio.sleep(0)
        newest = [site.arrive(MAC, 2), site.arrive(OTHER, 2)]
        assert (first[1].done(), waiting[1].done()) == (False, True)
        for one in newest:
            group.create_task(site.record(one))
        site.going_on.set()
    found = [one.epoch for one in site.recorded if one is not None]
    assert sorted(found) == [1, 2, 2] and site.recorded.count(None) == 1
    assert metrics.presences_replaced.read()[()] - replaced == 1


async def test_of_two_brokers_the_one_behind_replaces_nothing(replaced: int) -> None:
    site = Arrivals(1)
    ahead, behind = site.arrive(MAC, 7), site.arrive(MAC, 3)
    assert not ahead[1].done() and not behind[1].done()
    assert metrics.presences_replaced.read()[()] == replaced


async def test_nothing_is_kept_of_what_has_ended() -> None:
    site = Arrivals(4)
    site.going_on.set()
    for epoch in range(3):
        await site.record(site.arrive(MAC, epoch))
    site.arrive(OTHER, 1)[1].cancel()
    await asyncio.sleep(0)
    assert not site.presences._newest


async def test_a_malformed_presence_is_counted() -> None:
    site, before = Arrivals(1), metrics.malformed.read()[("presence",)]
    payload, ended = b"{", asyncio.Future[Exception | None]()
    await site.record((site.presences.expect(MAC, payload, ended), ended))
    assert site.recorded == [None] and metrics.malformed.read()[("presence",)] == before + 1

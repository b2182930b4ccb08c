"""Reminders of one device, with the functions of Redis; what delivers them is the product's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.announcements.clips import Clip, Clips
from fleet.adapters.redis.announcements.deliveries import Deliveries
from fleet.adapters.redis.devices.forgetting import erase, forget
from fleet.adapters.redis.devices.own_state import OwnState
from fleet.adapters.redis.devices.tenants import DeviceTenants
from fleet.adapters.redis.sessions.replies import Reply
from fleet.adapters.redis.shards.leases import Leases
from fleet.core.reminders import KEPT, LATE, MOST, MOST_CLAIMS, ms_of
from fleet.ground.errors import Unavailable
from fleet.ground.metrics import reminders as counted
from fleet.ground.tasks import running
from fleet.roles.worker.announcements.pauses import AnswerPauses
from fleet.roles.worker.announcements.receipts import ClipReceipts
from fleet.roles.worker.announcements.reminders import AT_ONCE, LOOK_SECONDS, ReminderRunner
from fleet.wire.clips import PATH, ClipDelivery, read_name
from fleet.wire.edge_messages import EDGE_EVENTS, MakeClipCommand, SayEvent
from fleet.wire.reminders import Reminder
from tests.support.announced import announcements
from tests.support.virtual_time import elapse
from tests.support.worker_stage import FOR_EVER, MAC, WorkerStage

CLIP_MS = 2_000


class House:
    """A device, and the parts of a worker that remind it."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage, self.kept = stage, stage.resources.reminders
        self.clips, self.deliveries = Clips(stage.resources.store), Deliveries(stage.resources.store)
        self.pauses, self._made = AnswerPauses(), 0
        self.voice = True
        """Whether clips are made."""

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.stage.redis.now(), UTC)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        def owned() -> dict[int, Any]:
            return {0: self.stage.shard}

        receipts = ClipReceipts(self.deliveries, owned)
        runner = ReminderRunner(self.stage.resources, announcements(self.stage, receipts, self.pauses), owned)
        async with running("receipts", receipts.run), running("edge", self._make_clips), running("runner", runner.run):
            yield

    async def _make_clips(self) -> None:
        while True:
            for order in self.orders()[self._made :] if self.voice else ():
                self._made += 1
                await self.clips.put(order.clip, Clip(b"sound of " + order.text.encode(), CLIP_MS))
            await elapse(0.5)

    def orders(self) -> list[MakeClipCommand]:
        return [one for one in self.stage.edge_commands() if isinstance(one, MakeClipCommand)]

    def inbox(self) -> Any:
        return self.stage.redis.run("XRANGE", self.stage.resources.store.keys.inbox(0), "-", "+")

    async def set(self, seconds: float = 10, name: str = "r1", **more: Any) -> Reminder | str:
        due = ms_of(self.now + timedelta(seconds=seconds))
        wanted = Reminder(id=name, text=f"Text of {name}.", due=due, language="en", **more)
        return await self.kept.add(self.stage.shard.owner, MAC, wanted)

    async def left(self) -> list[str]:
        return [one.id for one in await self.kept.read(MAC)]

    async def until_gone(self, seconds: float = 100) -> None:
        async with asyncio.timeout(seconds):
            while await self.left():
                await elapse(0.05)

    def shown(self) -> list[str]:
        return [one["message"] for one in self.stage.sent() if one["type"] == "alert"]

    def notices(self) -> list[dict[str, Any]]:
        return [one for one in self.stage.sent() if one["type"] == "notify"]

    async def notified(self) -> ClipDelivery:
        while not self.notices():
            await elapse(0.05)
        path = self.notices()[-1]["audio_url"].removeprefix(f"http://fleet.test:8000{PATH}/").removesuffix(".ogg")
        delivery = read_name(self.stage.resources.keys, path)
        assert delivery is not None
        return delivery

    async def fetch(self, delivery: ClipDelivery) -> None:
        assert await self.deliveries.take(delivery)
        await elapse(CLIP_MS / 1000)
        await self.deliveries.close(delivery, "closed", CLIP_MS)

    async def said(self) -> SayEvent:
        while True:
            entries = self.inbox()
            events = [EDGE_EVENTS.decode(dict(zip(words[::2], words[1::2], strict=True))["m"]) for _, words in entries]
            if found := [one for one in events if isinstance(one, SayEvent)]:
                return found[-1]
            await elapse(0.05)

    async def describe(self, firmware: str, dialect: str = "xiaozhi") -> None:
        about = {"fw": firmware, "dialect": dialect, "host": "fleet.test", "board": "bread"}
        await self.stage.resources.devices.describe(MAC, about)

    async def lose_shard(self) -> None:
        """Let another worker own the shard; this stage goes on as that one, and the deliveries of the first end."""
        deliveries = [task for task in asyncio.all_tasks() if task.get_name().startswith("reminder ")]
        for task in deliveries:
            task.cancel()
        if deliveries:
            await asyncio.wait(deliveries)
        leases = Leases(self.stage.resources.store, f"after-{self.stage.shard.owner.fence}", FOR_EVER)
        owner = await leases.take(0, lost=self.stage.shard.owner.fence)
        assert owner is not None
        self.stage.shard.lease.owner = owner


@pytest.fixture
async def house(stage: WorkerStage) -> House:
    await stage.connect()
    one = House(stage)
    await one.describe("2.2.6")
    return one


def ended(way: str, late: str = "no") -> int:
    return counted.ended.read()[way, late]


async def test_it_is_told_when_it_is_due_and_not_before_and_once(house: House) -> None:
    async with house.worker():
        await house.set(60)
        await elapse(59)
        assert house.shown() == []
        await elapse(2)
        assert house.shown() == ["Reminder: Text of r1."]
        await house.until_gone()
        await elapse(60)
    assert house.shown() == ["Reminder: Text of r1."]


async def test_an_idle_device_hears_it(house: House) -> None:
    await house.describe("2.5.0")
    async with house.worker():
        await house.set(10)
        await house.fetch(await house.notified())
        assert house.notices()[0]["subtitles"][0]["text"] == "Reminder: Text of r1."
        await house.until_gone()
    assert house.shown() == []


async def test_in_a_session_it_is_spoken_after_the_answer(house: House) -> None:
    owner = house.stage.shard.owner
    await house.stage.open()
    house.pauses.begin(MAC, "t1")
    async with house.worker():
        await house.set(5)
        await elapse(30)
        assert not house.inbox(), "the answer is still spoken"
        house.pauses.end(MAC, "t1", "spoken")
        event = await house.said()
        assert (event.text, event.reminder, event.polite) == ("Reminder: Text of r1.", True, True)
        house.pauses.begin(MAC, event.turn)
        await house.stage.resources.replies.write(owner, MAC, event.turn, Reply("answered", event.text))
        house.pauses.end(MAC, event.turn, "spoken")
        await house.until_gone()
    assert house.shown() == []


async def test_what_was_due_while_no_worker_was_there_is_told_late_and_says_so(house: House) -> None:
    zone = await house_zone(house, "Asia/Shanghai")
    await house.set(10)
    due = (house.now + timedelta(seconds=10)).astimezone(zone)
    await elapse(10 + LATE.total_seconds() + 60)
    async with house.worker():
        await house.until_gone()
    assert house.shown() == [f"Late reminder for {due:%H:%M}: Text of r1."]


async def house_zone(house: House, name: str) -> ZoneInfo:
    await Admissions(house.stage.resources.store).set_timezone(MAC, name)
    return ZoneInfo(name)


async def test_a_device_that_was_away_is_told_when_it_connects(house: House) -> None:
    await house.stage.connect(online=False, epoch=1)
    async with house.worker():
        await house.set(10)
        await elapse(100)
        assert house.shown() == [] and await house.left() == ["r1"]
        await house.stage.connect(epoch=2)
        await elapse(3 + LOOK_SECONDS + 1)
        assert house.shown() == ["Reminder: Text of r1."]
        await house.until_gone()


async def test_a_device_without_a_way_is_told_in_its_next_session(house: House) -> None:
    await house.describe("", "registrar")
    async with house.worker():
        await house.set(10)
        await elapse(60)
        assert house.stage.sent() == [] and await house.left() == ["r1"]
        await house.stage.open(dialect="registrar")
        async with asyncio.timeout(100):
            event = await house.said()
        assert event.text.endswith("Text of r1.") and event.session == "s1"


async def test_after_a_day_nobody_is_told(house: House) -> None:
    await house.stage.connect(online=False, epoch=1)
    before = ended("expired", "yes")
    async with house.worker():
        await house.set(10)
        await elapse(60)
    await elapse(KEPT.total_seconds())
    async with house.worker():
        await house.until_gone()
        await house.stage.connect(epoch=2)
        await elapse(100)
    assert house.shown() == [] and ended("expired", "yes") == before + 1


async def test_the_next_owner_goes_on_and_tells_nothing_twice(house: House) -> None:
    await house.describe("2.5.0")
    async with house.worker():
        await house.set(10)
        delivery = await house.notified()
        assert await house.deliveries.take(delivery)
    await house.lose_shard()
    await house.deliveries.close(delivery, "closed", CLIP_MS)
    async with house.worker():
        await house.until_gone()
    assert len(house.notices()) == 1 and house.shown() == []


async def test_one_that_crashed_a_few_workers_is_told_by_the_next(house: House) -> None:
    await house.set(1)
    await elapse(2)
    for _ in range(MOST_CLAIMS - 1):
        await house.kept.claim(house.stage.shard.owner, 0, 10, first=True)
        await house.lose_shard()
    async with house.worker():
        await house.until_gone()
    assert len(house.shown()) == 1


async def test_one_that_crashed_its_workers_or_was_begun_long_ago_is_given_up(house: House) -> None:
    before = ended("lost")
    await house.set(1)
    await elapse(2)
    for _ in range(MOST_CLAIMS):
        found = await house.kept.claim(house.stage.shard.owner, 0, 10, first=True)
        assert len(found.claimed) == 1
        await house.lose_shard()
    async with house.worker():
        await house.until_gone()
    await house.set(1, "r2")
    await elapse(2)
    await house.kept.claim(house.stage.shard.owner, 0, 10, first=True)
    await house.lose_shard()
    await elapse(3_600)
    async with house.worker():
        await house.until_gone()
    assert house.shown() == [] and ended("lost") == before + 2


async def test_of_a_device_one_is_told_after_the_other(house: House) -> None:
    await house.describe("2.5.0")
    async with house.worker():
        await house.set(10, "r1")
        await house.set(10, "r2")
        first = await house.notified()
        await elapse(3)
        assert len(house.notices()) == 1
        await house.fetch(first)
        while len(house.notices()) < 2:
            await elapse(0.05)
        await house.fetch(await house.notified())
        await house.until_gone()
    texts = {one["subtitles"][0]["text"] for one in house.notices()}
    assert texts == {"Reminder: Text of r1.", "Reminder: Text of r2."} and house.shown() == []


async def test_a_daily_one_comes_again_at_the_same_time_of_the_day(house: House) -> None:
    zone = await house_zone(house, "Asia/Shanghai")
    clock = (house.now + timedelta(minutes=2)).astimezone(zone)
    await house.set((clock.replace(second=0, microsecond=0) - house.now).total_seconds(), clock=f"{clock:%H:%M}")
    async with house.worker():
        await elapse(130)
        assert house.shown() == ["Reminder: Text of r1."]
        (following,) = await house.kept.read(MAC)
        again = datetime.fromtimestamp(following.due / 1000, zone)
        assert (again.hour, again.minute) == (clock.hour, clock.minute)
        assert again - house.now > timedelta(hours=23)
    await elapse((again - house.now).total_seconds() - 5)
    async with house.worker():
        await elapse(10)
        assert house.shown() == ["Reminder: Text of r1."] * 2


async def test_a_session_brings_no_daily_one_before_its_time(house: House) -> None:
    clock = house.now + timedelta(minutes=2)
    await house.stage.connect(online=False, epoch=1)
    await house.set(120, clock=f"{clock:%H:%M}")
    async with house.worker():
        await elapse(400)
        await house.stage.connect(epoch=2)
        await elapse(20)
        assert len(house.shown()) == 1
        await house.stage.connect(online=False, epoch=2)
        await house.stage.connect(epoch=3)
        await house.stage.open()
        await elapse(60)
    assert len(house.shown()) == 1 and await house.left() == ["r1"]


async def test_one_that_is_looked_at_too_soon_waits_for_its_time(house: House) -> None:
    owner = house.stage.shard.owner
    await house.set(1)
    await elapse(2)
    (claimed,) = (await house.kept.claim(owner, 0, 10, first=True)).claimed
    later = replace(claimed.reminder, due=ms_of(house.now + timedelta(seconds=60)))
    assert await house.kept.wait(owner, claimed, later, house.now, "session")
    async with house.worker():
        await elapse(55)
        assert house.shown() == []
        await house.until_gone()
    assert house.shown() == ["Reminder: Text of r1."]


async def test_a_daily_one_comes_at_its_time_of_the_day_in_the_zone_that_its_device_gets(house: House) -> None:
    await house_zone(house, "UTC")
    due = (house.now + timedelta(hours=3)).replace(second=0, microsecond=0)
    await house.set((due - house.now).total_seconds(), "daily", clock=f"{due:%H:%M}")
    await house.set(600, "once")
    async with house.worker():
        for change in (Admissions(house.stage.resources.store).set_timezone(MAC, "Asia/Shanghai"), own_zone(house)):
            before = [one.due for one in await house.kept.read(MAC)]
            await change
            await elapse(LOOK_SECONDS + 1)
            once, daily = await house.kept.read(MAC)
            zone = ZoneInfo((await OwnState(house.stage.resources.store).read([MAC]))[MAC]["timezone"])
            local = datetime.fromtimestamp(daily.due / 1000, zone)
            assert (f"{local:%H:%M}", once.due) == (daily.clock, before[0]) and daily.due != before[1]
            assert house.now < local < house.now + timedelta(hours=24)
    assert house.shown() == []


async def own_zone(house: House) -> None:
    await OwnState(house.stage.resources.store).write({MAC: {"timezone": "America/New_York"}})


async def test_one_that_is_cancelled_during_the_answer_before_it_is_not_spoken(house: House) -> None:
    await house.stage.open()
    house.pauses.begin(MAC, "t1")
    async with house.worker():
        await house.set(5)
        await elapse(30)
        assert await house.kept.cancel(MAC, ["r1"]) == 1
        house.pauses.end(MAC, "t1", "spoken")
        await elapse(300)
    assert not house.inbox() and house.shown() == []


async def test_one_that_is_cancelled_while_its_clip_is_made_is_not_told(house: House) -> None:
    await house.describe("2.5.0")
    house.voice = False
    async with house.worker():
        await house.set(5)
        while not house.orders():
            await elapse(0.05)
        assert await house.kept.cancel(MAC, ["r1"]) == 1
        house.voice = True
        await elapse(300)
    assert house.notices() == [] and house.shown() == []


async def test_a_cancelled_one_is_not_told_and_none_of_it_is_left(house: House) -> None:
    async with house.worker():
        await house.set(10, "r1")
        await house.set(10, "r2")
        assert await house.kept.cancel(MAC, ["r1", "other"]) == 1
        await elapse(60)
        assert house.shown() == ["Reminder: Text of r2."]
        await house.set(10, "r3")
        assert await house.kept.clear(MAC) == 1
        await elapse(60)
    assert house.shown() == ["Reminder: Text of r2."]
    keys = house.stage.resources.store.keys
    for key in (keys.reminders_due(0), keys.reminders_begun(0), keys.reminders(MAC)):
        assert not house.stage.redis.run("EXISTS", key)


async def test_one_that_is_cancelled_while_it_is_told_does_not_come_back(house: House) -> None:
    clock = house.now + timedelta(seconds=10)
    await house.set(10, clock=f"{clock:%H:%M}")
    await elapse(11)
    owner = house.stage.shard.owner
    (claimed,) = (await house.kept.claim(owner, 0, 10, first=True)).claimed
    assert await house.kept.clear(MAC) == 1
    assert not await house.kept.end(owner, claimed, claimed.reminder)
    assert not await house.kept.wait(owner, claimed, claimed.reminder, house.now, "session")
    assert await house.left() == []


async def test_a_call_that_is_made_again_sets_one_and_tells_when_the_first_is_due(house: House) -> None:
    first = await house.set(10)
    again = await house.set(20)
    assert again == first and await house.left() == ["r1"]
    async with house.worker():
        await house.until_gone()
        await house.set(10)
        await elapse(60)
    assert len(house.shown()) == 1


async def test_a_device_has_a_bound(house: House) -> None:
    for number in range(MOST):
        assert isinstance(await house.set(100, f"r{number}"), Reminder)
    assert await house.set(100, "more") == "device"


async def test_many_slow_devices_of_one_tenant_hold_up_nobody_else(house: House) -> None:
    slow, house.voice = [f"02:00:00:00:01:{number:02x}" for number in range(2 * AT_ONCE)], False
    store, owner = house.stage.resources.store, house.stage.shard.owner
    for mac in slow:
        await house.stage.resources.devices.appear(mac, online=True, epoch=1)
        await house.stage.resources.devices.describe(mac, {"fw": "2.5.0", "dialect": "xiaozhi", "host": "fleet.test"})
        await house.kept.add(owner, mac, Reminder(id="s", text=f"Of {mac}.", due=ms_of(house.now), language="en"))
    await DeviceTenants(store).put(dict.fromkeys(slow, 5))
    async with house.worker():
        await elapse(10)
        await house.set(1)
        await house.until_gone(LOOK_SECONDS + 1)
        assert len(house.orders()) > 1, "the others wait for their clips"
        assert {one.tenant for one in house.orders()} == {5}
    assert house.shown() == ["Reminder: Text of r1."]


async def test_an_owner_that_lost_the_shard_sets_and_tells_nothing(house: House) -> None:
    former = house.stage.shard.owner
    await house.set(1)
    await elapse(2)
    (claimed,) = (await house.kept.claim(former, 0, 10, first=True)).claimed
    await house.lose_shard()
    calls: list[Any] = [
        lambda: house.kept.claim(former, 0, 10, first=True),
        lambda: house.kept.end(former, claimed),
        lambda: house.kept.add(former, MAC, Reminder(id="x", text="x", due=1)),
    ]
    for call in calls:
        with pytest.raises(Exception, match="FENCED"):
            await call()
    assert await house.left() == ["r1"]


async def test_while_redis_is_away_it_is_tried_again(house: House) -> None:
    async with house.worker():
        await house.set(10)
        house.stage.connection.fault = Unavailable("away")
        await elapse(30)
        assert house.shown() == []
        house.stage.connection.fault = None
        await house.until_gone()
    assert house.shown() == ["Reminder: Text of r1."]


async def test_a_delivery_that_redis_interrupted_goes_on_when_redis_is_back(house: House) -> None:
    begun, house.stage.connection.there = house.stage.resources.store.keys.reminders_begun(0), 0.5
    async with house.worker():
        await house.set(1)
        while not house.stage.redis.run("EXISTS", begun):
            await elapse(0.05)
        house.stage.connection.fault = Unavailable("away")
        await elapse(20)
        assert house.shown() == []
        house.stage.connection.fault = None
        await house.until_gone()
    assert house.shown() == ["Reminder: Text of r1."]


async def test_a_new_owner_of_the_device_and_who_forgets_it_leave_none(house: House) -> None:
    store, index = house.stage.resources.store, house.stage.resources.store.keys.reminders_due(0)
    await Admissions(store).bind(MAC, "c1")
    await house.set(100)
    await Admissions(store).bind(MAC, "c2")
    assert await house.left() == [] and not house.stage.redis.run("EXISTS", index)
    await house.set(100, "r2")
    await Admissions(store).unbind(MAC)
    assert await house.left() == [] and not house.stage.redis.run("EXISTS", index)
    await house.set(100, "r3")
    await house.stage.connect(online=False, epoch=1)
    await erase(store, MAC)
    assert not house.stage.redis.run("EXISTS", index)
    await house.set(100, "r4")
    await forget(store, [MAC])
    assert await house.left() == [] and not house.stage.redis.run("EXISTS", index)


async def test_reminders_of_a_device_whose_record_expired_are_deleted(house: House) -> None:
    await house.set(10)
    house.stage.redis.run("DEL", house.stage.resources.store.keys.device(MAC))
    async with house.worker():
        await house.until_gone()
    assert house.stage.sent() == []

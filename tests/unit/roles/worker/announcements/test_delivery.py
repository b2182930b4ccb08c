"""Announcements to one device, by each way, with the functions of Redis and an api and an edge that the test plays."""

import asyncio
from collections import Counter
from itertools import pairwise
from unittest.mock import AsyncMock

import pytest

from fleet.adapters.redis.announcements.clips import Clips, ClipState
from fleet.adapters.redis.announcements.deliveries import Deliveries, DeliveryRecord
from fleet.adapters.redis.devices.notify_faults import NotifyFaults
from fleet.adapters.redis.sessions.replies import Reply
from fleet.adapters.redis.sessions.sessions import Sessions
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.redis.shards.owner import Owner
from fleet.ground.metrics import announcements as counted
from fleet.roles.worker.announcements.clips import KNOWN_SECONDS
from fleet.wire.announcements import DeviceAnnouncement, Way
from fleet.wire.clips import ClipDelivery
from fleet.wire.edge_messages import EdgeEvent
from fleet.wire.operator_calls import AWAKE_LATER, OFFLINE
from tests.support.announced import announcements
from tests.support.announcement_desk import CLIP_MS, Desk, describe, said
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage


@pytest.fixture
async def desk(stage: WorkerStage) -> Desk:
    await stage.connect()
    await describe(stage, "2.5.0")
    return Desk(stage)


@pytest.mark.parametrize(("ms", "outcome"), [(CLIP_MS - 1_200, "played"), (1_500, "cut short")])
async def test_an_idle_device_fetches_its_clip_and_its_close_tells_how_much_it_played(
    desk: Desk, ms: int, outcome: str
) -> None:
    async with desk.worker():
        await desk.put("a")
        delivery = await desk.notified()
        assert desk.notices()[0]["subtitles"] == [{"start_ms": 0, "text": "Tea is ready."}]
        await desk.fetch(delivery, ms)
        record = await desk.ended("a")
    assert (record.state, record.text) == ("ok", f"notify: {outcome}")
    assert desk.made == 1


async def test_a_clip_is_made_once_for_all_who_want_it_and_fetched_once_by_each(desk: Desk) -> None:
    async with desk.worker():
        for count in (1, 2):
            await desk.put(f"call-{count}")
            delivery = await desk.notified(count)
            await desk.fetch(delivery, CLIP_MS)
            assert await desk.deliveries.take(delivery) == "", "whoever else has the address gets nothing"
            await desk.ended(f"call-{count}")
        assert desk.made == 1
        await desk.put("other", text="Dinner is ready.")
        await desk.fetch(await desk.notified(3), CLIP_MS)
        await desk.ended("other")
    assert desk.made == 2


async def test_a_clip_that_is_made_is_looked_for_once_in_a_while_and_not_by_each_device(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, find = [], Clips.find

    async def count(clips: Clips, clip: str) -> ClipState:
        looks.append(clip)
        return await find(clips, clip)

    monkeypatch.setattr(Clips, "find", count)
    async with desk.worker():
        for number, pause in enumerate((0.0, 0.0, KNOWN_SECONDS)):
            await elapse(pause)
            before = len(looks)
            await desk.put(f"call-{number}")
            await desk.fetch(await desk.notified(number + 1), CLIP_MS)
            assert (await desk.ended(f"call-{number}")).text == "notify: played"
            assert (len(looks) > before) is (number != 1)


async def test_a_device_that_does_not_fetch_gets_the_next_way_and_after_two_of_them_no_more_clips(desk: Desk) -> None:
    async with desk.worker():
        for count in (1, 2, 3):
            await desk.put(f"call-{count}")
            record = await desk.ended(f"call-{count}")
            assert (record.state, record.text) == ("ok", "alert: shown")
            assert len(desk.notices()) == min(count, 2)
        await describe(desk.stage, "2.5.1")
        await desk.put("new firmware")
        await desk.fetch(await desk.notified(3), CLIP_MS)
        assert (await desk.ended("new firmware")).text == "notify: played"
    assert [one["message"] for one in desk.stage.sent() if one["type"] == "alert"] == ["Tea is ready."] * 3


async def test_a_late_fetch_after_the_next_way_is_refused(desk: Desk) -> None:
    async with desk.worker():
        await desk.put("a")
        delivery = await desk.notified()
        await desk.ended("a")
        assert await desk.deliveries.take(delivery) == "", "it would hear what it was shown"


async def test_a_device_that_fetches_at_the_last_moment_gets_no_next_way(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    withdraw = Deliveries.withdraw

    async def take_before(deliveries: Deliveries, owner: Owner, delivery: ClipDelivery) -> bool:
        assert await deliveries.take(delivery)
        return await withdraw(deliveries, owner, delivery)

    monkeypatch.setattr(Deliveries, "withdraw", take_before)
    async with desk.worker():
        await desk.put("a")
        assert (await desk.ended("a")).text == "notify: taken"
    assert not [one for one in desk.stage.sent() if one["type"] == "alert"]


async def test_one_that_began_a_session_meanwhile_is_not_counted_against_the_device(desk: Desk) -> None:
    async with desk.worker():
        for count in (1, 2, 3):
            await desk.put(f"call-{count}", "notify", "alert")
            await desk.notified(count)
            session = await desk.stage.open(f"s{count}")
            assert (await desk.ended(f"call-{count}")).text == "alert: shown"
            await desk.stage.resources.sessions.close(desk.stage.shard.owner, MAC, session.id)
    assert len(desk.notices()) == 3


async def test_an_idle_device_is_asked_for_no_more_than_is_needed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, read = Counter[str](), Deliveries.read
    monkeypatch.setattr(Sessions, "read", None)
    monkeypatch.setattr(NotifyFaults, "count", None)

    async def count(deliveries: Deliveries, delivery: ClipDelivery) -> DeliveryRecord:
        calls["read"] += 1
        return await read(deliveries, delivery)

    monkeypatch.setattr(Deliveries, "read", count)
    async with desk.worker():
        await desk.put("a")
        await desk.fetch(await desk.notified(), CLIP_MS)
        assert (await desk.ended("a")).text == "notify: played"
    assert calls == {"read": 2}, "as it begins, and as the device has closed"


async def test_older_firmware_is_shown_the_text_and_an_offline_device_waits(desk: Desk) -> None:
    await describe(desk.stage, "2.2.6")
    async with desk.worker():
        await desk.put("old")
        assert (await desk.ended("old")).text == "alert: shown"
        await desk.put("keep", "speech", "notify", "wake")
        record = await desk.ended("keep")
        assert (record.state, record.text) == ("not_sent", AWAKE_LATER)
        await desk.stage.connect(online=False, epoch=1)
        await desk.put("away")
        record = await desk.ended("away")
        assert (record.state, record.text) == ("not_sent", OFFLINE)
    assert not desk.notices()


async def test_in_a_session_it_is_spoken_after_the_answer_and_never_over_it(desk: Desk) -> None:
    await desk.stage.open()
    desk.pauses.begin(MAC, "t1")
    async with desk.worker():
        await desk.put("a")
        await elapse(20)
        inbox = desk.stage.resources.store.keys.inbox(0)
        assert not desk.stage.redis.run("XRANGE", inbox, "-", "+"), "the answer is still spoken"
        desk.pauses.end(MAC, "t1", "spoken")
        event = await said(desk)
        assert (event.text, event.session, event.polite) == ("Tea is ready.", "s1", True)
        await elapse(10)
        assert desk.stage.redis.run("XLEN", inbox) == 1, "its end is waited for"
        desk.pauses.begin(MAC, event.turn)
        await desk.stage.resources.replies.write(desk.stage.shard.owner, MAC, event.turn, Reply("answered", event.text))
        desk.pauses.end(MAC, event.turn, "spoken")
        assert (await desk.ended("a")).text == "speech: spoken"
    assert not desk.notices()


async def test_one_for_which_there_was_no_room_in_the_session_is_said_again_and_one_without_answers_soon(
    desk: Desk,
) -> None:
    await desk.stage.open()
    owner = desk.stage.shard.owner
    async with desk.worker():
        await desk.put("a")
        event = await said(desk)
        await desk.stage.resources.replies.write(owner, MAC, event.turn, Reply("busy"))
        again = await said(desk, 2)
        assert again.turn == event.turn
        desk.pauses.begin(MAC, event.turn)
        await desk.stage.resources.replies.write(owner, MAC, event.turn, Reply("answered", "x"))
        desk.pauses.end(MAC, event.turn, "cut_short")
        assert (await desk.ended("a")).text == "speech: cut short"


@pytest.mark.parametrize(("ways", "outcome"), [((), "alert: shown"), (("speech", "wake"), AWAKE_LATER)])
async def test_one_of_which_nothing_was_heard_is_told_by_the_next_way_or_later(
    desk: Desk, ways: tuple[Way, ...], outcome: str
) -> None:
    await desk.stage.open()
    async with desk.worker():
        await desk.put("a", *ways)
        event = await said(desk)
        desk.pauses.begin(MAC, event.turn)
        await desk.stage.resources.replies.write(desk.stage.shard.owner, MAC, event.turn, Reply("answered", "x"))
        desk.pauses.end(MAC, event.turn, "cut_short", 0)
        assert (await desk.ended("a")).text == outcome


async def test_when_the_session_ends_before_it_can_be_spoken_the_idle_device_is_notified(desk: Desk) -> None:
    before = counted.deliveries.read()
    session = await desk.stage.open()
    desk.pauses.begin(MAC, "t1")
    async with desk.worker():
        await desk.put("a")
        await elapse(5)
        await desk.stage.resources.sessions.close(desk.stage.shard.owner, MAC, session.id)
        await desk.fetch(await desk.notified(), CLIP_MS)
        assert (await desk.ended("a")).text == "notify: played"
    steps = counted.deliveries.read() - before
    assert steps == {("speech", "not_taken"): 1, ("notify", "played"): 1}


@pytest.mark.parametrize("fetched", [True, False])
async def test_the_next_owner_of_the_shard_goes_on_and_takes_no_way_twice(desk: Desk, *, fetched: bool) -> None:
    async with desk.worker():
        await desk.put("a")
        delivery = await desk.notified()
        if fetched:
            assert await desk.deliveries.take(delivery)
        # This worker dies: the next one finds the delivery begun.
        next(one for one in asyncio.all_tasks() if one.get_name() == f"operator calls {MAC}").cancel()
    await desk.deliveries.close(delivery, "closed", CLIP_MS)
    async with desk.worker():
        record = await desk.ended("a")
    assert record.text == ("notify: played" if fetched else "alert: shown")
    assert len(desk.notices()) == 1


async def test_without_an_edge_the_text_is_shown(desk: Desk) -> None:
    desk.stage.directory.update([], asyncio.get_running_loop().time())
    async with desk.worker():
        await desk.put("a")
        assert (await desk.ended("a")).text == "alert: shown"


async def test_a_device_that_plays_holds_up_its_own_next_announcement_and_nobody_elses(desk: Desk) -> None:
    stage, other = desk.stage, "02:00:00:00:00:01"
    await stage.resources.devices.appear(other, online=True, epoch=1, owner=stage.shard.owner)
    await stage.resources.devices.describe(other, {"fw": "2.2.6", "dialect": "xiaozhi"})
    delivery = announcements(stage)
    announcement = DeviceAnnouncement("Tea is ready.", "", ("notify", "alert"))
    async with asyncio.TaskGroup() as group, desk.worker():
        first = [group.create_task(delivery.deliver(stage.shard, MAC, f"a{number}", announcement)) for number in (1, 2)]
        await desk.notified()
        assert (await delivery.deliver(stage.shard, other, "b", announcement)).text == "alert: shown"
        assert not any(one.done() for one in first) and len(desk.notices()) == 1


async def test_a_device_that_fetches_again_is_forgiven_what_it_did_not_fetch_before(desk: Desk) -> None:
    ends = []
    async with asyncio.timeout(300), desk.worker():
        for count, fetches in enumerate((False, True, False, True), 1):
            await desk.put(f"call-{count}")
            delivery = await desk.notified(count)
            if fetches:
                await desk.fetch(delivery, CLIP_MS)
            ends.append((await desk.ended(f"call-{count}")).text)
    assert ends == ["alert: shown", "notify: played"] * 2


async def test_what_a_full_inbox_refuses_is_offered_again_after_pauses(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, offer, clock = list[float](), Inboxes.offer_to_shard, asyncio.get_running_loop().time

    async def refuse(inboxes: Inboxes, shard: int, event: EdgeEvent) -> bool:
        tries.append(clock())
        return len(tries) > 3 and await offer(inboxes, shard, event)

    monkeypatch.setattr(Inboxes, "offer_to_shard", refuse)
    await desk.stage.open()
    async with asyncio.timeout(300), desk.worker():
        await desk.put("a", "speech")
        assert (await said(desk)).text == "Tea is ready."
    assert len(tries) == 4 and min(later - one for one, later in pairwise(tries)) >= 1


async def test_a_clip_that_no_edge_makes_is_waited_for_no_longer_than_the_longest_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.clips, "put", AsyncMock())
    async with asyncio.timeout(300), desk.worker():
        await desk.put("a")
        assert (await desk.ended("a")).text == "alert: shown"
    assert not desk.notices()

"""Whoever announces, and the parts of a worker, of an edge and of the api that deliver, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fleet.adapters.redis.announcements.clips import Clip, Clips
from fleet.adapters.redis.announcements.deliveries import Deliveries
from fleet.adapters.redis.shards.operator_calls import CallRecord, OperatorCalls
from fleet.core.rates import Rate
from fleet.ground.tasks import running
from fleet.roles.worker.announcements.kept import KeptTexts
from fleet.roles.worker.announcements.pauses import AnswerPauses
from fleet.roles.worker.announcements.receipts import ClipReceipts
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.operator_calls import OperatorCallRunner
from fleet.wire.announcements import TOOL, USUAL_WAYS, DeviceAnnouncement, Way
from fleet.wire.clips import PATH, ClipDelivery, read_name
from fleet.wire.edge_messages import EDGE_EVENTS, MakeClipCommand, SayEvent
from fleet.wire.operator_calls import OperatorCall
from tests.support.announced import announcements
from tests.support.virtual_time import elapse
from tests.support.worker_stage import MAC, WorkerStage

CLIP_MS = 4_000


class Desk:
    """Whoever announces, and the parts of a worker, of an edge and of the api that deliver."""

    def __init__(self, stage: WorkerStage) -> None:
        self.stage, store = stage, stage.resources.store
        self.queue, self.clips, self.deliveries = OperatorCalls(store), Clips(store), Deliveries(store)
        self.pauses, self.kept, self.made = AnswerPauses(), KeptTexts(), 0
        self.calls = DeviceCalls(stage.resources.calls, stage.resources.reports, Rate(1, 1), stage.counts)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        def owned() -> dict[int, Any]:
            return {0: self.stage.shard}

        receipts = ClipReceipts(Deliveries(self.stage.resources.store), owned)
        delivery = announcements(self.stage, receipts, self.pauses, self.kept)
        runner = OperatorCallRunner(self.stage.resources, self.queue, self.calls, owned, delivery)
        async with running("receipts", receipts.run), running("edge", self._make_clips), running("runner", runner.run):
            yield

    async def _make_clips(self) -> None:
        while True:
            orders = [one for one in self.stage.edge_commands() if isinstance(one, MakeClipCommand)]
            for order in orders[self.made :]:
                self.made += 1
                await self.clips.put(order.clip, Clip(b"sound of " + order.text.encode(), CLIP_MS))
            await elapse(0.05)

    async def put(self, name: str, *ways: Way, text: str = "Tea is ready.", tenant: int = 0) -> None:
        announcement = DeviceAnnouncement(text, "", ways or USUAL_WAYS, tenant=tenant)
        call = OperatorCall(device=MAC, call=name, tool=TOOL, arguments={}, announcement=announcement)
        assert await self.queue.put(call, 60, 3600) == "queued"

    async def ended(self, name: str) -> CallRecord:
        while not (record := await self.queue.find(MAC, name)) or not record.over:
            await elapse(0.05)
        return record

    def notices(self) -> list[dict[str, Any]]:
        return [one for one in self.stage.sent() if one["type"] == "notify"]

    async def notified(self, count: int = 1) -> ClipDelivery:
        """Return the delivery that the newest of so many messages names."""
        while len(self.notices()) < count:
            await elapse(0.05)
        path = self.notices()[-1]["audio_url"].removeprefix(f"http://fleet.test:8000{PATH}/").removesuffix(".ogg")
        delivery = read_name(self.stage.resources.keys, path)
        assert delivery is not None
        return delivery

    async def fetch(self, delivery: ClipDelivery, ms: int) -> None:
        """Do as the api does when the device fetches a clip and closes so many ms later."""
        assert await self.deliveries.take(delivery)
        await elapse(ms / 1000)
        await self.deliveries.close(delivery, "closed", ms)

    def dies(self) -> None:
        """Let the worker die: the next one finds what it has begun."""
        next(one for one in asyncio.all_tasks() if one.get_name() == f"operator calls {MAC}").cancel()


async def describe(stage: WorkerStage, firmware: str) -> None:
    about = {"fw": firmware, "dialect": "xiaozhi", "host": "fleet.test", "board": "bread"}
    await stage.resources.devices.describe(MAC, about)


async def said(desk: Desk, count: int = 1) -> SayEvent:
    """Return the newest of so many requests to speak."""
    inbox = desk.stage.resources.store.keys.inbox(0)
    while True:
        entries = desk.stage.redis.run("XRANGE", inbox, "-", "+")
        events = [EDGE_EVENTS.decode(dict(zip(words[::2], words[1::2], strict=True))["m"]) for _, words in entries]
        found = [one for one in events if isinstance(one, SayEvent)]
        if len(found) >= count:
            return found[-1]
        await elapse(0.05)

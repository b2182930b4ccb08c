"""Gives a device an announcement, by the best way that it has, and tells exactly what became of it.

A way is noted in Redis before it is taken. The shard's next owner, which finds the delivery begun, waits for the end of
that way; it takes none twice.
"""

import asyncio
import logging
from typing import Final, assert_never
from weakref import WeakValueDictionary

from fleet.adapters.redis.announcements.clips import Clips
from fleet.adapters.redis.announcements.deliveries import Deliveries, DeliveryRecord
from fleet.adapters.redis.devices.devices import DeviceRecord
from fleet.adapters.redis.devices.notify_faults import MOST as MOST_FAULTS
from fleet.adapters.redis.devices.notify_faults import NotifyFaults, read_faults
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.core.announcement_ways import is_open
from fleet.core.api_address import api_address
from fleet.core.text.screen import cut_for_screen
from fleet.ground.errors import Overloaded, ProviderError, Unavailable
from fleet.ground.metrics import announcements as counted
from fleet.roles.worker.announcements.clips import ClipOrders
from fleet.roles.worker.announcements.kept import KeptTexts
from fleet.roles.worker.announcements.order import DeviceDelivery, State, Wanted
from fleet.roles.worker.announcements.pauses import AnswerPauses
from fleet.roles.worker.announcements.receipts import AwaitedClip, ClipReceipts
from fleet.roles.worker.announcements.speech import AnnouncementSpeech
from fleet.roles.worker.calls.device_calls import Outcome
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.edge_directory import EdgeDirectory
from fleet.wire.announcements import WAYS, DeviceAnnouncement, Way
from fleet.wire.clips import ClipDelivery, clip_path
from fleet.wire.messages import AlertCommand, NotifyCommand
from fleet.wire.operator_calls import AWAKE_LATER, OFFLINE

log = logging.getLogger(__name__)

TAKEN_SECONDS: Final = 5.0
"""An idle device asks for its clip within this time."""
QUEUE_MS: Final = 1_500
"""What a device has read but not played: 20 packets of 60 ms, two more that are decoded, and a margin."""
LINGER_SECONDS: Final = 15.0
"""After the clip's length: an underrun, or a slow connection."""
CANCELLED: Final = "it was cancelled"


async def always() -> bool:
    """Return that an announcement is to be told, whatever happens."""
    return True


class AnnouncementDelivery:
    """Delivers.

    Args:
        resources: Of the worker.
        directory: The live edges.
        receipts: Of the clips.
        pauses: Of the answers.
        kept: Offers turns what was kept for their session.
    """

    def __init__(
        self,
        resources: WorkerResources,
        directory: EdgeDirectory,
        receipts: ClipReceipts,
        pauses: AnswerPauses,
        kept: KeptTexts,
    ) -> None:
        self._resources, self._receipts = resources, receipts
        self._deliveries = Deliveries(resources.store)
        self._speech = AnnouncementSpeech(resources, self._deliveries, pauses, kept)
        self._orders = ClipOrders(Clips(resources.store), resources.agents, directory, resources.inboxes)
        self._faults = NotifyFaults(resources.store)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A device gets one announcement at a time: firmware ignores a clip while it plays another one."""

    async def deliver(
        self, shard: Shard, mac: str, call: str, announcement: DeviceAnnouncement, wanted: Wanted = always
    ) -> Outcome:
        """Deliver an announcement, or go on with a delivery that another owner began.

        Args:
            shard: Of the device.
            mac: The device.
            call: The id of the operator's call, or of the reminder.
            announcement: The text, and the ways.
            wanted: Asked before each way is taken: a device may have to wait for its turn.

        Returns:
            `ok` with the way and what became of it, such as `notify: played`. `not_sent`: no way was left, and nothing
            was heard; a later try may succeed.

        Raises:
            Fenced: Another worker owns the shard.
            Unavailable: Redis is away; another try goes on.
        """
        turn = self._turns.setdefault(mac, asyncio.Lock())
        async with turn:
            delivery = ClipDelivery.of(shard.number, mac, call)
            return await self._deliver(DeviceDelivery(shard, mac, announcement, delivery, wanted))

    async def _deliver(self, order: DeviceDelivery) -> Outcome:
        announcement = order.announcement
        known, left = await self._deliveries.read(order.delivery), list(WAYS)
        if known.way:
            left = left[left.index(known.way) + 1 :]
            if state := await self._go_on(order, known.way, known):
                return _outcome(known.way, state)
        device, session = await self._look(order.mac)
        for way in left:
            if not device.online or not (way in announcement.ways or _is_awaited(way, announcement, session)):
                continue
            if not is_open(way, speaks=session is not None, dialect=device.dialect, firmware=device.firmware):
                continue
            if not await order.wanted():
                return Outcome("not_sent", CANCELLED)
            if state := await self._take(order, way, device):
                return _outcome(way, state)
            device, session = await self._look(order.mac)
        return await self._give_back(order, device)

    async def _give_back(self, order: DeviceDelivery, device: DeviceRecord) -> Outcome:
        """Return why a device was not told; let its next session wait for the text, if it is to be told then."""
        if not device.online:
            return Outcome("not_sent", OFFLINE)
        if not await order.wanted():
            return Outcome("not_sent", CANCELLED)
        if "wake" in order.announcement.ways:
            await self._deliveries.keep(order.shard.owner, order.mac)
        return Outcome("not_sent", AWAKE_LATER)

    async def _look(self, mac: str) -> tuple[DeviceRecord, SessionRecord | None]:
        """Return a device as it is now, and the session in which it can speak."""
        device = await self._resources.devices.read(mac)
        return device, await self._speech.session(mac) if device.session else None

    async def _take(self, order: DeviceDelivery, way: Way, device: DeviceRecord) -> State | None:
        """Try one way; return None if the device has not got it by this way."""
        match way:
            case "speech":
                return await self._speech.speak(order)
            case "notify":
                return await self._notify(order, device)
            case "alert":
                return await self._alert(order, device)
            case "wake":
                return None
            case _:
                assert_never(way)

    async def _go_on(self, order: DeviceDelivery, way: Way, known: DeliveryRecord) -> State | None:
        match way:
            case "speech":
                return await self._speech.go_on(order, known)
            case "notify":
                with self._receipts.awaiting(order.delivery) as awaited:
                    clip = await self._clip(order)
                    return await self._follow(order, awaited, clip[1] if clip else 0, known)
            case "alert":
                return "sent"
            case "wake":
                return None
            case _:
                assert_never(way)

    async def _notify(self, order: DeviceDelivery, device: DeviceRecord) -> State | None:
        """Let an idle device fetch the clip."""
        base = api_address(self._resources.settings, device.host)
        if base is None:
            return None
        faults = read_faults(device.unfetched, device.firmware)
        if faults >= MOST_FAULTS:
            return None
        clip = await self._clip(order)
        if clip is None or not await order.wanted():
            return None
        await self._deliveries.note(order.shard.owner, order.delivery, "notify", clip[0])
        url = base + clip_path(self._resources.keys, order.delivery)
        with self._receipts.awaiting(order.delivery) as awaited:
            try:
                order.shard.publish(order.mac, NotifyCommand(url, order.announcement.text), device.dialect)
            except (Unavailable, Overloaded):
                return None
            return await self._follow(order, awaited, clip[1], None, faults)

    async def _follow(
        self,
        order: DeviceDelivery,
        awaited: AwaitedClip,
        clip_ms: int,
        known: DeliveryRecord | None,
        faults: int = 1,
    ) -> State | None:
        """Wait for the device's request, then for the end of it."""
        taken = bool(known and known.taken) or await self._receipts.wait(awaited.taken, TAKEN_SECONDS)
        if not taken and await self._deliveries.withdraw(order.shard.owner, order.delivery):
            counted.deliveries.add("notify", "not_taken")
            await self._judge_silence(order)
            return None
        if faults:
            await self._faults.forget(order.mac)
        if known is None or known.end is None:
            known = await self._receipts.look(order.delivery, awaited.ended, clip_ms / 1000 + LINGER_SECONDS)
        if known.end != "closed":
            return "taken"
        return "played" if known.ms >= clip_ms - QUEUE_MS else "cut_short"

    async def _judge_silence(self, order: DeviceDelivery) -> None:
        """Count a device against itself that neither asked for the clip nor was in a session."""
        device = await self._resources.devices.read(order.mac)
        idle = device.online and await self._speech.session(order.mac) is None
        if idle and await self._faults.add(order.mac, device.firmware):
            about = {"device": order.mac, "firmware": device.firmware}
            log.warning("device does not fetch notifications, it gets none any more", extra=about)

    async def _clip(self, order: DeviceDelivery) -> tuple[str, int] | None:
        try:
            return await self._orders.find(order.mac, order.announcement)
        except ProviderError as error:
            log.warning("announcement without sound", extra={"device": order.mac, "reason": str(error)})
            return None

    async def _alert(self, order: DeviceDelivery, device: DeviceRecord) -> State | None:
        text = order.announcement.text
        shown = cut_for_screen(text)
        await self._deliveries.note(order.shard.owner, order.delivery, "alert")
        try:
            order.shard.publish(order.mac, AlertCommand("", shown), device.dialect)
        except (Unavailable, Overloaded):
            return None
        return "shown"


def _is_awaited(way: Way, announcement: DeviceAnnouncement, session: SessionRecord | None) -> bool:
    """Whether an announcement of the way `wake` is spoken now: the session is one for which texts were kept."""
    return way == "speech" and "wake" in announcement.ways and session is not None and bool(session.kept)


def _outcome(way: Way, state: State) -> Outcome:
    counted.deliveries.add(way, state)
    return Outcome("ok", f"{way}: {state.replace('_', ' ')}")

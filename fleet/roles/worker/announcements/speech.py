"""The way `speech` of an announcement: a device says the text in its session.

It is a turn of its own, in a pause. A text that was kept for the session may also begin the answer to a turn of the
user, whichever is first.
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Final, Literal

from fleet.adapters.redis.announcements.deliveries import Deliveries, DeliveryRecord
from fleet.adapters.redis.sessions.replies import Reply
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.core.history import count_sentences
from fleet.ground.metrics import announcements as counted
from fleet.roles.worker.announcements.kept import KeptText, KeptTexts
from fleet.roles.worker.announcements.order import DeviceDelivery, State
from fleet.roles.worker.announcements.pauses import AnswerPauses
from fleet.roles.worker.resources import WorkerResources
from fleet.wire.edge_messages import SayEvent

REPLY_SECONDS: Final = 60.0
SESSION_SECONDS: Final = 90.0
"""Longest time in which a device in a session is not interrupted."""
_LOOK_SECONDS: Final = 0.2


class AnnouncementSpeech:
    """Speaks announcements.

    Args:
        resources: Of the worker.
        deliveries: Their records.
        pauses: Of the answers.
        kept: Offers turns what was kept for their session.
    """

    def __init__(
        self, resources: WorkerResources, deliveries: Deliveries, pauses: AnswerPauses, kept: KeptTexts
    ) -> None:
        self._resources, self._deliveries = resources, deliveries
        self._pauses, self._kept = pauses, kept

    async def session(self, mac: str) -> SessionRecord | None:
        """Return the session in which a device can speak."""
        found = await self._resources.sessions.read(mac)
        return found if found and found.edge else None

    async def speak(self, order: DeviceDelivery) -> State | None:
        """Let the device speak the text, after the present answer; return None if it did not."""
        clock = asyncio.get_running_loop().time
        until = clock() + SESSION_SECONDS
        while clock() < until and (session := await self.session(order.mac)):
            kept = await self._wait(order, session)
            if kept is not None and kept.turn:
                state = await self._heard_in(order, kept.turn) if kept.handed else await self.go_on(order)
                if state:
                    return state
                if await order.wanted():
                    continue
                break
            present = await self.session(order.mac)
            if present is None or not await order.wanted():
                break
            if present.id != session.id:
                continue
            await self._deliveries.note(order.shard.owner, order.delivery, "speech")
            said = SayEvent(
                device=order.mac,
                session=session.id,
                turn=order.turn,
                text=order.announcement.text,
                language=order.announcement.language,
                polite=True,
                reminder=order.announcement.reminder,
            )
            await self._resources.replies.expect(order.mac, order.turn)
            if not await self._resources.inboxes.offer_to_shard(order.shard.number, said):
                await asyncio.sleep(1.0)
                continue
            ending = await self._spoken(order)
            if ending == "unheard":
                break
            if ending:
                return ending
        counted.deliveries.add("speech", "not_taken")
        return None

    async def go_on(self, order: DeviceDelivery, known: DeliveryRecord | None = None) -> State | None:
        """Wait for the end of what an earlier owner of the shard, or a turn that broke off, has begun."""
        known = known or await self._deliveries.read(order.delivery)
        if not known.turn:
            ending = await self._spoken(order)
            return None if ending == "unheard" else ending
        conversations = self._resources.conversations
        with suppress(TimeoutError):
            async with asyncio.timeout(REPLY_SECONDS):
                while journal := await conversations.journal(order.mac):
                    if journal.turn != known.turn:
                        break
                    if journal.state != "running":
                        # The text is in the journal before it is handed over.
                        said = any(one.text == order.announcement.text for one in journal.messages)
                        return await self._heard_in(order, known.turn) if said else None
                    await asyncio.sleep(_LOOK_SECONDS)
        return "sent"

    async def _wait(self, order: DeviceDelivery, session: SessionRecord) -> KeptText | None:
        """Wait for a pause; return the text if a turn might take it meanwhile."""
        if not session.kept or "wake" not in order.announcement.ways:
            await self._pauses.wait(order.mac)
            return None
        note = partial(self._deliveries.note, order.shard.owner, order.delivery, "speech", "")
        kept = KeptText(session.id, order.announcement.text, order.announcement.language, note, order.wanted)
        with self._kept.offered(order.mac, kept):
            await self._pauses.wait(order.mac)
        if kept.turn:
            await kept.decided.wait()
        return kept

    async def _heard_in(self, order: DeviceDelivery, turn: str) -> State | None:
        """Wait for the end of the answer that begins with the text; None if the user has heard nothing of it."""
        end = await self._pauses.outcome(order.mac, turn)
        if end.spoken == "spoken":
            return "spoken"
        if end.sentences is None:
            return "sent"
        if not end.sentences:
            return None
        return "spoken" if end.sentences > count_sentences(order.announcement.text) else "cut_short"

    async def _spoken(self, order: DeviceDelivery) -> State | Literal["unheard"] | None:
        """Wait for the end of the turn that speaks; None if it was not begun, so that it may still be.

        An edge speaks no turn again that was interrupted: of one that is unheard, another delivery says the text.
        """
        reply: Reply | None = None
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                while True:
                    reply = await self._resources.replies.read(order.mac, order.turn)
                    if reply is None or reply.over:
                        break
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            return "sent"
        if reply is None or reply.state == "busy" or (reply.state == "interrupted" and not reply.text):
            return None
        end = await self._pauses.outcome(order.mac, order.turn)
        return "unheard" if end.sentences == 0 else end.spoken or "sent"

"""`GET /xiaozhi/clips/…`: the sound of an announcement, for the one device that was sent the address, once.

The request is the receipt that the device began to play: firmware fetches only when it is idle. It reads as it plays,
so the moment in which it closes the connection tells whether it played to the end. What was written tells nothing: the
kernel takes a whole clip at once.
"""

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from fleet.adapters.redis.announcements.clips import Clip, Clips
from fleet.adapters.redis.announcements.deliveries import Deliveries
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Unavailable
from fleet.ground.metrics import announcements as counted
from fleet.roles.api.refusals import RefusedRequest
from fleet.roles.api.throttle import Throttle
from fleet.wire.clips import PATH, ClipDelivery, read_name
from fleet.wire.identity import CredentialKeys

log = logging.getLogger(__name__)

LINGER_SECONDS: Final = 30.0
"""How long after the clip's length a connection is kept open that the client does not close."""
MOST_KEPT: Final = 16 * 1024 * 1024
"""Bytes of clips in the memory of one process."""


class ClipRoute:
    """Sends clips.

    Args:
        keys: Have signed the addresses.
        store: Has clips and deliveries.
        throttle: Limits requests with addresses that nobody was given.
    """

    def __init__(self, keys: CredentialKeys, store: Store, throttle: Throttle) -> None:
        self._keys, self._throttle = keys, throttle
        self._deliveries, self._clips = Deliveries(store), KeptClips(Clips(store))
        self.router = APIRouter()
        self.router.add_api_route(f"{PATH}/{{name}}.ogg", self.send, methods=["GET"])

    async def send(self, request: Request, name: str) -> Response:
        """Send the clip of a delivery.

        Raises:
            RefusedRequest: Nobody may have it, or not any more (404); too many such requests of one address (429);
                Redis does not answer (503).
        """
        delivery = read_name(self._keys, name)
        if delivery is None:
            self._throttle.admit_address("clip", request)
            counted.fetched.add("refused")
            raise _gone()
        try:
            named = await self._deliveries.take(delivery)
            clip = await self._clips.find(named) if named else None
        except Unavailable as error:
            raise RefusedRequest("store away", 503, "try again later", {"Retry-After": "1"}) from error
        if clip is None:
            counted.fetched.add("gone")
            raise _gone()
        counted.fetched.add("sent")
        # A proxy reads at once and hides when its client closes.
        return ClipResponse(clip, delivery, self._deliveries, seen="x-forwarded-for" not in request.headers)


class ClipResponse(Response):
    """A clip, and then a wait for the client's close.

    Args:
        clip: The clip.
        delivery: Whose close is noted.
        deliveries: Where.
        seen: Whether the client's close can be seen.
    """

    media_type = "audio/ogg"

    def __init__(self, clip: Clip, delivery: ClipDelivery, deliveries: Deliveries, *, seen: bool) -> None:
        super().__init__(clip.audio, headers={"Cache-Control": "no-store"})
        self._delivery, self._deliveries, self._seen = delivery, deliveries, seen
        self._limit = clip.ms / 1000 + LINGER_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        taken = clock()
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        # The answer stays open, though its length is complete: only so uvicorn tells of the close.
        await send({"type": "http.response.body", "body": bytes(self.body), "more_body": True})
        closed = await self._closed(receive)
        ms = round((clock() - taken) * 1000)
        with suppress(Unavailable):
            await self._deliveries.close(self._delivery, "closed" if self._seen and closed else "unseen", ms)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _closed(self, receive: Receive) -> bool:
        """Wait for the client's close; return False if it does not close."""
        message: Message = {"type": ""}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limit if self._seen else 0.0):
                while message["type"] != "http.disconnect":
                    message = await receive()
        return bool(message["type"] == "http.disconnect")


class KeptClips:
    """Clips in memory: an announcement to ten thousand devices reads one clip ten thousand times.

    Args:
        clips: Where they come from.
        most: Bytes that are kept; the least recently used clips are forgotten first.
    """

    def __init__(self, clips: Clips, most: int = MOST_KEPT) -> None:
        self._clips, self._most = clips, most
        self._kept: OrderedDict[str, Clip] = OrderedDict()
        self._held = 0

    async def find(self, clip: str) -> Clip | None:
        """Return a clip, None if it is gone.

        Raises:
            Unavailable: Redis does not answer.
        """
        if known := self._kept.get(clip):
            self._kept.move_to_end(clip)
            return known
        found = await self._clips.read(clip)
        if found and clip not in self._kept:
            self._kept[clip] = found
            self._held += len(found.audio)
            while self._held > self._most:
                self._held -= len(self._kept.popitem(last=False)[1].audio)
        return found


def _gone() -> RefusedRequest:
    return RefusedRequest("clip: none", 404, "there is no such clip")

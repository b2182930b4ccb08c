"""`/v1/events`: stored events page by page, or a stream of those that happen."""

import json
import random
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from fleet.adapters.sql.device_rows import DeviceRows
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.core.permissions import CONVERSATIONS_READ, EVENTS_READ
from fleet.ground.errors import Overloaded
from fleet.roles.control.access import Principal, Who, milliseconds
from fleet.roles.control.device_queries import read_mac, read_query
from fleet.roles.control.following.feed import event_json
from fleet.roles.control.following.filters import EventFilter
from fleet.roles.control.following.shares import ShareTaken
from fleet.roles.control.following.stream import LIFE_SECONDS
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import RouteNotes, Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.events import EventPage, EventQuery

STREAM = "text/event-stream"
_EVENTS = RouteNotes(gives=("application/json", STREAM), headers=("Last-Event-ID",))
_TRANSCRIPT = RouteNotes(gives=(STREAM,), refusals=(406,))
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_MOST_KINDS = 32
_LONGEST_ID = 19


class EventRoutes:
    """Events of the caller's tenant."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._following = services, services.following
        routes.add("GET /events", self.read, EVENTS_READ, model=EventPage, notes=_EVENTS)
        routes.add("GET /devices/{mac}/transcript", self.watch, CONVERSATIONS_READ, model=None, notes=_TRANSCRIPT)

    async def read(self, request: Request, who: Who, query: Annotated[EventQuery, Query()]) -> Response:
        """Return stored events, the oldest first; with `Accept: text/event-stream` those that happen.

        A stream takes the id of the last event that the client has from `Last-Event-ID`, too.
        """
        condition = read_query(query.filter) if query.filter.strip() else None
        wanted = EventFilter(who.tenant, _kinds(query.kinds), _mac(query.device), condition)
        if STREAM in request.headers.get("accept", ""):
            return self._stream(who, wanted, _last_id(request) if query.after is None else query.after)
        streams, gap = self._following.streams, False
        if query.newest:
            events, following = await streams.newest(wanted, query.limit), None
        else:
            events, following, gap = await streams.page(wanted, query.after or 0, query.limit)
        items = ",".join(map(event_json, events))
        body = f'{{"items":[{items}],"next":{json.dumps(following)},"gap":{json.dumps(gap)}}}'
        return Response(body, media_type="application/json")

    def _stream(self, who: Principal, wanted: EventFilter, after: int | None) -> Response:
        try:
            frames = self._following.streams.follow(who, wanted, after, _life(who))
        except (Overloaded, ShareTaken) as error:
            raise _full(error) from error
        return StreamingResponse(frames, media_type=STREAM, headers=_HEADERS)

    async def watch(self, request: Request, who: Who, mac: str) -> Response:
        """Follow what is said on a device, from its next turn on, as text/event-stream. Nothing of it is kept."""
        name = read_mac(mac)
        if await DeviceRows(self._services.database, who.tenant).read(name) is None:
            raise not_found("device")
        if STREAM not in request.headers.get("accept", "*/*") and "*/*" not in request.headers.get("accept", "*/*"):
            raise Problem(406, "stream-only", "a transcript comes as text/event-stream")
        try:
            self._following.live.check(who)
        except (Overloaded, ShareTaken) as error:
            raise _full(error) from error
        async with self._services.changes.begin(request) as change:
            await change.audit("conversation.watch", f"device/{name}")
        frames = self._following.live.follow(who, name, _life(who))
        return StreamingResponse(frames, media_type=STREAM, headers=_HEADERS)


def _life(who: Principal) -> float:
    # Spread, so that clients do not all come back at once. A token that expires is not followed longer.
    life = LIFE_SECONDS * random.uniform(1.0, 1.1)
    return life if who.expires is None else max(0.0, min(life, (who.expires - milliseconds()) / 1000))


def _full(error: Overloaded | ShareTaken) -> Problem:
    if isinstance(error, ShareTaken):
        return Problem(429, "too-many-streams", str(error), headers={"Retry-After": "30"})
    return Problem(503, "too-many-followers", str(error), headers={"Retry-After": "30"})


def _kinds(text: str) -> frozenset[str]:
    kinds = frozenset(name.strip() for name in text.split(",") if name.strip())
    if len(kinds) > _MOST_KINDS:
        raise Problem(400, "bad-kinds", f"at most {_MOST_KINDS} kinds can be named")
    return kinds


def _mac(text: str) -> int:
    return mac_number(read_mac(text)) if text else 0


def _last_id(request: Request) -> int | None:
    text = request.headers.get("last-event-id", "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _LONGEST_ID:
        raise Problem(400, "bad-event-id", "Last-Event-ID is the number of an event")
    return int(text)

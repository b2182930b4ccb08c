"""Events: what happened to devices, sessions, turns and tools."""

from typing import Annotated, Any

from pydantic import Field

from fleet.wire.control.shapes import NUMBER, Shape, Time


class EventQuery(Shape):
    """Which events are wanted.

    `kinds`: kinds or families (`turn`), separated by commas. `filter`: a query for devices. `device`: a MAC. `after`:
    the id of the last event that the client has. `newest`: the last `limit` events instead, as far as they are wanted.
    """

    kinds: Annotated[str, Field(max_length=1_000)] = ""
    filter: Annotated[str, Field(max_length=2_000)] = ""
    device: Annotated[str, Field(max_length=40)] = ""
    after: Annotated[int | None, Field(ge=0, le=2**62), NUMBER] = None
    limit: Annotated[int, Field(ge=1, le=500), NUMBER] = 100
    newest: bool = False


class Event(Shape):
    """Something that happened. `data` depends on the kind (docs/operating/events.md); `device` is a MAC, or null."""

    id: Annotated[int, Field(ge=0), NUMBER]
    at: Time
    kind: str
    device: str | None
    data: dict[str, Any]


class EventPage(Shape):
    """Stored events, the oldest first. `next` is the value of `after` for the next page; null at the newest event.

    `gap` tells that events after `after` are not kept any more.
    """

    items: list[Event]
    next: int | None = None
    gap: bool = False

"""What all answers of the API share."""

from datetime import UTC, date, datetime
from typing import Annotated, Final, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

Item = TypeVar("Item")
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""Times between them can be written with any offset, and have days before and after them."""


class Shape(BaseModel):
    """A request or an answer; unknown fields of a request are refused, so that a typing mistake is found."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number is expected")
    return value


NUMBER: Final = BeforeValidator(_no_truth)
"""Stands behind the bounds of a number of a request: `true` is none."""
USUAL_MOST: Final = 100
"""Devices that get another agent without anybody having said how many these are."""
MostDevices = Annotated[int, Field(ge=0, le=2**31), NUMBER]
"""The type of a field that bounds how many devices a change concerns."""


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Time = Annotated[datetime, PlainSerializer(_iso, return_type=str, when_used="json")]
"""A time in UTC, as RFC 3339 writes it."""


def _between(at: datetime) -> datetime:
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    if not _FIRST <= at <= _LAST:
        raise ValueError("a time from 1970 to 9999-12-30 is expected")
    return at


def _day_between(day: date) -> date:
    if not _FIRST.date() <= day <= _LAST.date():
        raise ValueError("a day from 1970 to 9999-12-30 is expected")
    return day


GivenTime = Annotated[Time, AfterValidator(_between)]
"""A time of a request; without an offset it is in UTC."""
GivenDay = Annotated[date, AfterValidator(_day_between)]
"""A day of a request."""


def time_of(milliseconds: int) -> datetime:
    """Return a time that the database has in milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def time_or_none(milliseconds: int | None) -> datetime | None:
    """Return a time that may be missing: 0 and None mean never."""
    return time_of(milliseconds) if milliseconds else None


def milliseconds_of(at: datetime | None) -> int | None:
    """Return a `GivenTime` in milliseconds since 1970."""
    return None if at is None else int(at.timestamp() * 1000)


class ListPage(Shape, Generic[Item]):
    """A part of a list. `next` is the cursor of the next part, null at the end."""

    items: list[Item]
    next: str | None = None

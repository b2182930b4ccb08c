"""What all answers of the API share."""

from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer

Item = TypeVar("Item")


class Shape(BaseModel):
    """A request or an answer; unknown fields of a request are refused, so that a typing mistake is found."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Time = Annotated[datetime, PlainSerializer(_iso, return_type=str, when_used="json")]
"""A time in UTC, as RFC 3339 writes it."""


def time_of(milliseconds: int) -> datetime:
    """Return a time that the database has in milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def time_or_none(milliseconds: int | None) -> datetime | None:
    """Return a time that may be missing: 0 and None mean never."""
    return time_of(milliseconds) if milliseconds else None


def milliseconds_of(at: datetime | None) -> int | None:
    """Return a time in milliseconds since 1970; without an offset it is in UTC."""
    if at is None:
        return None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


class ListPage(Shape, Generic[Item]):
    """A part of a list. `next` is the cursor of the next part, null at the end."""

    items: list[Item]
    next: str | None = None

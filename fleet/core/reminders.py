"""Reminders: when they are due by the clock of their device, until when they are told, and what is said then."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, Literal, Protocol

from msgspec.structs import replace

from fleet.core.text.phrases import known_language, phrase
from fleet.wire.reminders import Reminder

MOST: Final = 20
"""Reminders of a device."""
LONGEST: Final = 200
"""Characters of a reminder's text."""
HORIZON: Final = timedelta(days=366)
LATE: Final = timedelta(minutes=3)
"""Whoever is told later hears for when it was."""
KEPT: Final = timedelta(hours=24)
"""How long after its time a device that could not be told is still told."""
MOST_CLAIMS: Final = 3
"""How often a delivery is begun: it may crash its workers."""
LONGEST_DELIVERY: Final = timedelta(minutes=50)
"""A delivery that began longer ago is not taken up again: which ways it took may be forgotten."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When somebody wants to be reminded: seconds from now, or a time of day, on a day or on each."""

    seconds: int | None = None
    clock: time | None = None
    day: date | None = None
    daily: bool = False


class DeviceReminders(Protocol):
    """The reminders of one device, for tools. All methods return None while they cannot be kept."""

    @property
    def zone(self) -> tzinfo:
        """The device's own time zone, with its clock changes."""

    async def add(self, text: str, moment: Moment, due: datetime) -> Reminder | Literal["device", "site"] | None:
        """Keep a reminder, one for a text and a moment in a turn. Return it, or where there is no place."""

    async def all(self) -> list[Reminder] | None:
        """Return the reminders, the next one first."""

    async def cancel(self, ids: list[str]) -> int | None:
        """Delete reminders; return how many there were."""


def clean(text: str) -> str:
    """Return a text as a reminder's, on one printable line; empty if it is none or too long."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= LONGEST and any(char.isalnum() for char in line) else ""


def due_at(moment: Moment, now: datetime, zone: tzinfo) -> datetime | str:
    """Return when a reminder is due, in UTC; or why that is no time, as text for the model.

    A time of day that a clock change leaves out is later by as much as the clock jumps; of one that comes twice, the
    first counts.
    """
    if (moment.seconds is None) == (moment.clock is None):
        return "give either in_seconds or time, not both"
    if moment.clock is None:
        due = now + timedelta(seconds=moment.seconds or 0)
    elif moment.day is None:
        due = next_time(moment.clock, now, zone)
    else:
        due = _at(moment.day, moment.clock, zone)
    if due <= now:
        return f"{describe_time(due, zone)} is over; it is {describe_time(now, zone)} now"
    if due > now + HORIZON:
        return "that is more than a year away"
    return due.astimezone(UTC)


def next_time(clock: time, now: datetime, zone: tzinfo) -> datetime:
    """Return the next moment at which clocks of a zone show a time of day."""
    today = now.astimezone(zone).date()
    return next(due for days in range(3) if (due := _at(today + timedelta(days=days), clock, zone)) > now)


def follow(reminder: Reminder, now: datetime, zone: tzinfo) -> Reminder | None:
    """Return a daily reminder as it comes next; None for one that came once."""
    if not reminder.clock:
        return None
    return replace(reminder, due=ms_of(next_time(time.fromisoformat(reminder.clock), now, zone)))


def moved(reminder: Reminder, now: datetime, zone: tzinfo) -> Reminder:
    """Return a reminder that is not due yet, a daily one at its time of day in a zone that may be another one now."""
    if not reminder.clock:
        return reminder
    since = max(now, time_of(reminder) - timedelta(hours=12))
    return replace(reminder, due=ms_of(next_time(time.fromisoformat(reminder.clock), since, zone)))


def newest(reminder: Reminder, now: datetime, zone: tzinfo) -> Reminder:
    """Return a daily reminder at the last time that it was due; missed times before are left out."""
    if not reminder.clock:
        return reminder
    last = next_time(time.fromisoformat(reminder.clock), now - timedelta(days=1), zone)
    return replace(reminder, due=max(reminder.due, ms_of(last))) if last <= now else reminder


def is_over(reminder: Reminder, now: datetime) -> bool:
    """Whether it is too late to tell a device."""
    return now > time_of(reminder) + KEPT


def is_late(reminder: Reminder, now: datetime) -> bool:
    """Whether a device that is told now hears for when the reminder was."""
    return now > time_of(reminder) + LATE


def announced(reminder: Reminder, now: datetime, zone: tzinfo, language: str) -> str:
    """Return what a device is told.

    Args:
        reminder: The reminder.
        now: When its delivery began.
        zone: Of the device.
        language: Of the server's fixed sentences, where that of the reminder has none.
    """
    spoken = known_language(reminder.language, language)
    if not is_late(reminder, now):
        return phrase("reminder", spoken).format(text=reminder.text)
    clock = f"{time_of(reminder).astimezone(zone):%H:%M}"
    return phrase("reminder_late", spoken).format(text=reminder.text, time=clock)


def describe_time(due: datetime, zone: tzinfo) -> str:
    """Return a moment in words, by the clocks of a zone."""
    local = due.astimezone(zone)
    seconds = f":{local:%S}" if local.second else ""
    return f"{local:%A}, {local.day} {local:%B} {local.year}, {local:%H:%M}{seconds}"


def describe(reminder: Reminder, now: datetime, zone: tzinfo) -> dict[str, str]:
    """Return what the model is told of a reminder."""
    due = time_of(reminder)
    every = {"every_day_at": reminder.clock} if reminder.clock else {}
    shown = {"id": reminder.id, "text": reminder.text, "next" if reminder.clock else "at": describe_time(due, zone)}
    return {**shown, **every, "in": describe_span(due - now)}


def describe_span(span: timedelta) -> str:
    """Return a length of time in words, in its two largest units."""
    left, parts = max(0, round(span.total_seconds())), []
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    return " ".join(parts[:2]) or "no time"


def _at(day: date, clock: time, zone: tzinfo) -> datetime:
    # With fold=0, Python takes a time that does not exist by the clock before the change, and one that comes twice as
    # the first. The first and the last days that Python knows have no time in some zones.
    day = min(max(day, date.min + timedelta(days=2)), date.max - timedelta(days=2))
    return datetime.combine(day, clock, tzinfo=zone).astimezone(UTC)


def time_of(reminder: Reminder) -> datetime:
    """Return when a reminder is due."""
    return datetime.fromtimestamp(reminder.due / 1000, UTC)


def ms_of(at: datetime) -> int:
    """Return a time in ms since 1970."""
    return round(at.timestamp() * 1000)

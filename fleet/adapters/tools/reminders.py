"""The tools by which the model sets, lists and cancels timers and reminders of a device."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, time

from pydantic import JsonValue

from fleet.adapters.tools.beside import NO_STORE
from fleet.adapters.tools.days import FORMS, find_day
from fleet.adapters.tools.tool import built_in, failed, text_of
from fleet.core.reminders import (
    HORIZON,
    LONGEST,
    MOST,
    DeviceReminders,
    Moment,
    clean,
    describe,
    due_at,
)
from fleet.core.server_tools import Caller, ServerResult, ServerTool

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?", re.ASCII)
_FULL = {
    "device": f"not done, this device has {MOST} reminders, which is the most; ask which one to cancel",
    "site": "not done, the server has no place for more reminders of this device now; ask which one to cancel",
}


class ReminderTools:
    """`set_reminder`, `list_reminders` and `cancel_reminder`.

    Args:
        reminders: Of the device whose turn this is.
        now: Returns the present time, with a time zone.
    """

    def __init__(self, reminders: DeviceReminders, now: Callable[[], datetime]) -> None:
        self._reminders, self._now = reminders, now

    def tools(self) -> Sequence[ServerTool]:
        """Return the tools; each may run again when its first outcome is unknown."""
        return (
            built_in(
                "set_reminder",
                "Set a timer, an alarm or a reminder: the device tells the user the text when it is time, also when "
                "nobody talks to it. Then say for when it is set.",
                self._set,
                repeatable=True,
                text={
                    "type": "string",
                    "maxLength": LONGEST,
                    "required": True,
                    "description": "What the user is told then, in the user's language, such as `Call your mother.`",
                },
                in_seconds={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": round(HORIZON.total_seconds()),
                    "description": "Seconds from now, for timers. Either this or `time`.",
                },
                time={"type": "string", "description": "Local time of day, 24 hours, as HH:MM: 20:00 for 8 pm."},
                date={
                    "type": "string",
                    "description": f"Day of `time`: {FORMS}. Without it the next time that it is so late.",
                },
                daily={"type": "boolean", "description": "Whether it comes every day at `time`."},
            ),
            built_in("list_reminders", "List the timers and reminders that are set.", self._list, repeatable=True),
            built_in(
                "cancel_reminder",
                "Cancel a timer or reminder.",
                self._cancel,
                repeatable=True,
                id={
                    "type": "string",
                    "required": True,
                    "description": "Its id, which list_reminders tells; `all` for all of them.",
                },
            ),
        )

    async def _set(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        text, now = clean(text_of(arguments, "text")), self._now()
        if not text:
            return failed(f"not done, the text must have words, and at most {LONGEST} characters")
        moment = _moment(arguments, now.astimezone(self._reminders.zone))
        due = moment if isinstance(moment, str) else due_at(moment, now, self._reminders.zone)
        if isinstance(moment, str) or isinstance(due, str):
            return failed(f"not done, {due}")
        kept = await self._reminders.add(text, moment, due)
        if kept is None:
            return failed(NO_STORE)
        if isinstance(kept, str):
            return failed(_FULL[kept])
        return ServerResult({"set": {**describe(kept, now, self._reminders.zone)}})

    async def _list(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        found, now = await self._reminders.all(), self._now()
        if found is None:
            return failed(NO_STORE)
        return ServerResult({"reminders": [{**describe(one, now, self._reminders.zone)} for one in found]})

    async def _cancel(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        wanted, found = text_of(arguments, "id"), await self._reminders.all()
        if found is None:
            return failed(NO_STORE)
        gone = [one for one in found if wanted in (one.id, "all")]
        if not gone and found and wanted != "all":
            return failed(f"not done, no reminder has the id {wanted[:64]!r}; list_reminders tells the ids")
        if await self._reminders.cancel([one.id for one in gone]) is None:
            return failed(NO_STORE)
        # A call that is repeated after the death of a worker finds nothing, which is no failure.
        return ServerResult({"cancelled": [one.text for one in gone], "left": len(found) - len(gone)})


def _moment(arguments: dict[str, JsonValue], local: datetime) -> Moment | str:
    """Return the moment that a call names, or why it names none."""
    wanted, named, daily = text_of(arguments, "time"), text_of(arguments, "date"), arguments.get("daily") is True
    seconds = arguments.get("in_seconds")
    day = find_day(named, local.date()) if named else None
    if named and day is None:
        return f"the date {named[:64]!r} is not known; give {FORMS}"
    if not wanted:
        if named or daily:
            return "a date and `daily` need a time of day"
        return Moment(seconds=int(seconds)) if isinstance(seconds, int | float) else Moment()
    found = _CLOCK.fullmatch(wanted)
    if found is None:
        return f"{wanted[:64]!r} is no time of day such as 20:00"
    clock = time(int(found[1]), int(found[2]))
    return Moment(int(seconds) if isinstance(seconds, int | float) else None, clock, day, daily)

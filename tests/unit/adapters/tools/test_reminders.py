"""Timers and reminders as the model sets, lists and cancels them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pytest
from pydantic import JsonValue

from fleet.adapters.tools.beside import ToolsBeside
from fleet.adapters.tools.reminders import ReminderTools
from fleet.core.reminders import Moment, ms_of
from fleet.core.server_tools import Caller, ServerResult
from fleet.core.tool_policy import risk_of
from fleet.wire.reminders import Reminder

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


@dataclass
class Kept:
    kept: list[Reminder] = field(default_factory=list)
    zone: tzinfo = BERLIN
    full: Literal["device", "site"] | None = None
    away: bool = False

    async def add(self, text: str, moment: Moment, due: datetime) -> Reminder | Literal["device", "site"] | None:
        if self.away or self.full:
            return None if self.away else self.full
        clock = f"{moment.clock:%H:%M}" if moment.clock and moment.daily else ""
        self.kept.append(Reminder(id=f"r{len(self.kept)}", text=text, due=ms_of(due), clock=clock))
        return self.kept[-1]

    async def all(self) -> list[Reminder] | None:
        return None if self.away else self.kept

    async def cancel(self, ids: list[str]) -> int | None:
        before, self.kept = len(self.kept), [one for one in self.kept if one.id not in ids]
        return before - len(self.kept)


async def call(kept: Kept, tool: str, **arguments: Any) -> ServerResult:
    tools = ToolsBeside(None, ReminderTools(kept, lambda: NOON).tools())
    return await tools.call(tool, dict(arguments), Caller("s"))


async def set_(kept: Kept, **arguments: JsonValue) -> Any:
    result = await call(kept, "set_reminder", **arguments)
    value: Any = result.value
    return value if result.failed else value["set"]


async def test_a_timer_and_a_time_of_day_are_set_and_told() -> None:
    kept = Kept()
    timer = await set_(kept, text=" Eggs\nare ready. ", in_seconds=600)
    assert timer == {
        "id": "r0",
        "text": "Eggs are ready.",
        "at": "Friday, 27 November 2026, 13:10",
        "in": "10 minutes",
    }
    assert (await set_(kept, text="Call Anna.", time="08:00"))["at"] == "Saturday, 28 November 2026, 08:00"
    assert (await set_(kept, text="Call Anna.", time="8:05", date="monday"))["at"] == "Monday, 30 November 2026, 08:05"
    assert (await set_(kept, text="Call Anna.", time="20:00:30", date="下周一"))["at"].endswith("20:00")
    daily = await set_(kept, text="Up!", time="07:00", daily=True)
    assert (daily["next"], daily["every_day_at"]) == ("Saturday, 28 November 2026, 07:00", "07:00")
    assert [one.clock for one in kept.kept] == ["", "", "", "", "07:00"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"text": "?"}, "must have words"),
        ({"text": "x" * 201, "in_seconds": 5}, "not done"),
        ({"text": "x"}, "either in_seconds or time"),
        ({"text": "x", "in_seconds": 5, "time": "20:00"}, "either in_seconds or time"),
        ({"text": "x", "in_seconds": 0}, "not done"),
        ({"text": "x", "in_seconds": 10**9}, "not done"),
        ({"text": "x", "time": "25:00"}, "is no time of day"),
        ({"text": "x", "time": "20:00+02:00"}, "is no time of day"),
        ({"text": "x", "time": "20:00", "date": "soon"}, "the date 'soon' is not known"),
        ({"text": "x", "date": "tomorrow"}, "need a time of day"),
        ({"text": "x", "in_seconds": 5, "daily": True}, "need a time of day"),
        ({"text": "x", "time": "08:00", "date": "today"}, "is over; it is Friday, 27 November 2026, 13:00 now"),
    ],
)
async def test_what_cannot_be_set_is_refused_with_a_reason(arguments: dict[str, JsonValue], why: str) -> None:
    kept = Kept()
    result = await call(kept, "set_reminder", **arguments)
    assert result.failed and why in str(result.value)
    assert kept.kept == []


async def test_one_or_all_are_listed_and_cancelled() -> None:
    kept = Kept()
    for text in ("One.", "Two.", "Three."):
        await set_(kept, text=text, in_seconds=60)
    listed: Any = (await call(kept, "list_reminders")).value
    assert [one["id"] for one in listed["reminders"]] == ["r0", "r1", "r2"]
    assert await call(kept, "cancel_reminder", id="r1") == ServerResult({"cancelled": ["Two."], "left": 2})
    unknown = await call(kept, "cancel_reminder", id="r1")
    assert unknown.failed and "no reminder has the id" in str(unknown.value)
    assert await call(kept, "cancel_reminder", id="all") == ServerResult({"cancelled": ["One.", "Three."], "left": 0})
    # Repeated after the death of a worker.
    assert await call(kept, "cancel_reminder", id="r1") == ServerResult({"cancelled": [], "left": 0})


@pytest.mark.parametrize(("full", "why"), [("device", "has 20 reminders"), ("site", "no place for more reminders")])
async def test_full_places_and_a_lost_store_are_told(full: Literal["device", "site"], why: str) -> None:
    assert why in await set_(Kept(full=full), text="x", in_seconds=5)
    for tool, arguments in (
        ("set_reminder", {"text": "x", "in_seconds": 5}),
        ("list_reminders", {}),
        ("cancel_reminder", {"id": "all"}),
    ):
        result = await call(Kept(away=True), tool, **arguments)
        assert result.failed and "cannot reach its store" in str(result.value)


def test_a_policy_may_ask_before_they_act() -> None:
    risks = [risk_of(tool.offer.name, "server") for tool in ReminderTools(Kept(), lambda: NOON).tools()]
    assert risks == ["act", "read", "act"]

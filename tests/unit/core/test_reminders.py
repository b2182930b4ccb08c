"""When reminders are due by the clocks of their device, and what is said."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from fleet.core.reminders import (
    KEPT,
    LATE,
    LONGEST,
    Moment,
    announced,
    clean,
    describe,
    describe_span,
    due_at,
    follow,
    is_late,
    is_over,
    moved,
    ms_of,
    newest,
)
from fleet.wire.reminders import REMINDERS, Reminder

BERLIN, SHANGHAI, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Shanghai"), timezone(timedelta(minutes=330))
NOON = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("moment", "zone", "due"),
    [
        (Moment(seconds=90), BERLIN, NOON + timedelta(seconds=90)),
        (Moment(clock=time(20)), BERLIN, utc(2026, 11, 27, 19)),
        (Moment(clock=time(20)), SHANGHAI, utc(2026, 11, 28, 12)),
        (Moment(clock=time(20, 1)), SHANGHAI, utc(2026, 11, 27, 12, 1)),
        (Moment(clock=time(8)), BERLIN, utc(2026, 11, 28, 7)),
        (Moment(clock=time(17, 45)), KOLKATA, utc(2026, 11, 27, 12, 15)),
        (Moment(clock=time(8), day=date(2026, 12, 24)), BERLIN, utc(2026, 12, 24, 7)),
        (Moment(clock=time(8), day=date(2027, 7, 1)), BERLIN, utc(2027, 7, 1, 6)),
        (Moment(clock=time(7), daily=True), BERLIN, utc(2026, 11, 28, 6)),
    ],
)
def test_a_moment_is_one_by_the_clock_of_the_device(moment: Moment, zone: ZoneInfo, due: datetime) -> None:
    assert due_at(moment, NOON, zone) == due


@pytest.mark.parametrize(
    ("moment", "why"),
    [
        (Moment(), "either"),
        (Moment(seconds=5, clock=time(8)), "either"),
        (Moment(clock=time(8), day=date(2026, 11, 27)), "Friday, 27 November 2026, 08:00 is over"),
        (Moment(seconds=400 * 86_400), "more than a year"),
        (Moment(clock=time(8), day=date(2028, 1, 1)), "more than a year"),
    ],
)
def test_what_is_no_time_is_refused_with_a_reason(moment: Moment, why: str) -> None:
    assert why in str(due_at(moment, NOON, BERLIN))


@pytest.mark.parametrize("zone", [BERLIN, ZoneInfo("America/New_York")])
def test_the_first_and_the_last_day_of_all_are_no_time_in_any_zone(zone: ZoneInfo) -> None:
    assert "is over" in str(due_at(Moment(clock=time(0), day=date.min), NOON, zone))
    assert "more than a year" in str(due_at(Moment(clock=time(23, 59), day=date.max), NOON, zone))


@pytest.mark.parametrize(
    ("now", "clock", "due"),
    [
        # In the night of 2026-03-29 clocks jump from 2:00 to 3:00: 2:30 is an hour later, at 3:30 summer time.
        (utc(2026, 3, 28, 20), time(2, 30), utc(2026, 3, 29, 1, 30)),
        (utc(2026, 3, 29, 0, 59), time(3), utc(2026, 3, 29, 1)),
        # In the night of 2026-10-25 clocks go back from 3:00 to 2:00: the first 2:30 counts.
        (utc(2026, 10, 24, 20), time(2, 30), utc(2026, 10, 25, 0, 30)),
        (utc(2026, 10, 25, 0, 45), time(2, 30), utc(2026, 10, 26, 1, 30)),
    ],
)
def test_a_clock_change_has_one_answer(now: datetime, clock: time, due: datetime) -> None:
    assert due_at(Moment(clock=clock), now, BERLIN) == due


def test_a_daily_reminder_comes_at_the_same_time_of_day_after_a_clock_change() -> None:
    daily = Reminder(id="a", text="Up!", due=ms_of(utc(2026, 3, 28, 6)), clock="07:00")
    following = follow(daily, utc(2026, 3, 28, 6), BERLIN)
    assert following == replace(daily, due=ms_of(utc(2026, 3, 29, 5)))
    assert follow(replace(daily, clock=""), NOON, BERLIN) is None


def test_missed_times_of_a_daily_reminder_are_left_out() -> None:
    daily = Reminder(id="a", text="Up!", due=ms_of(utc(2026, 11, 20, 6)), clock="07:00")
    assert newest(daily, utc(2026, 11, 27, 8), BERLIN).due == ms_of(utc(2026, 11, 27, 6))
    assert newest(daily, utc(2026, 11, 27, 5), BERLIN).due == ms_of(utc(2026, 11, 26, 6))
    once = replace(daily, clock="")
    assert newest(once, NOON, BERLIN) is once
    assert newest(daily, utc(2026, 11, 20, 6), BERLIN) == daily


@pytest.mark.parametrize(
    ("zone", "due"),
    [
        (BERLIN, utc(2026, 11, 28, 7)),
        (SHANGHAI, utc(2026, 11, 28, 0)),
        (ZoneInfo("America/Los_Angeles"), utc(2026, 11, 28, 16)),
        (ZoneInfo("Pacific/Auckland"), utc(2026, 11, 28, 19)),
    ],
)
def test_a_daily_one_comes_next_at_its_time_in_another_zone(zone: ZoneInfo, due: datetime) -> None:
    daily = Reminder(id="a", text="Up!", due=ms_of(utc(2026, 11, 28, 7)), clock="08:00")
    assert moved(daily, NOON, zone) == replace(daily, due=ms_of(due))
    assert moved(replace(daily, clock=""), NOON, zone) == replace(daily, clock="")
    first = replace(daily, due=ms_of(utc(2026, 12, 24, 7)))
    assert abs(moved(first, NOON, zone).due - first.due) <= 12 * 3_600_000, "it begins on a later day"


@pytest.mark.parametrize(
    ("language", "late", "said"),
    [
        ("en", timedelta(), "Reminder: Call Anna {now}."),
        ("zh", timedelta(), "提醒：Call Anna {now}."),
        ("de", LATE, "提醒：Call Anna {now}."),
        ("en", LATE + timedelta(seconds=1), "Late reminder for 13:00: Call Anna {now}."),
        ("zh", timedelta(hours=3), "迟到的提醒，原定13:00：Call Anna {now}."),
    ],
)
def test_who_is_told_late_hears_for_when_it_was(language: str, late: timedelta, said: str) -> None:
    reminder = Reminder(id="a", text="Call Anna {now}.", due=ms_of(NOON), language=language)
    assert announced(reminder, NOON + late, BERLIN, "zh") == said
    assert is_late(reminder, NOON + late) == (late > LATE)


def test_after_a_day_it_is_over() -> None:
    reminder = Reminder(id="a", text="x", due=ms_of(NOON))
    assert not is_over(reminder, NOON + KEPT)
    assert is_over(reminder, NOON + KEPT + timedelta(seconds=1))


def test_the_model_is_told_the_exact_local_time_in_words() -> None:
    once = Reminder(id="a1", text="Eggs.", due=ms_of(NOON + timedelta(seconds=90)))
    at = "Friday, 27 November 2026, 13:01:30"
    assert describe(once, NOON, BERLIN) == {"id": "a1", "text": "Eggs.", "at": at, "in": "1 minute 30 seconds"}
    daily = Reminder(id="b2", text="Up!", due=ms_of(utc(2026, 11, 28, 6)), clock="07:00")
    told = describe(daily, NOON, BERLIN)
    assert (told["next"], told["every_day_at"]) == ("Saturday, 28 November 2026, 07:00", "07:00")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "no time"), (1, "1 second"), (3_600, "1 hour"), (93_784, "1 day 2 hours"), (61, "1 minute 1 second")],
)
def test_a_span_is_told_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert describe_span(timedelta(seconds=seconds)) == words


def test_a_text_is_one_printable_line_with_words() -> None:
    assert clean(" Call\nAnna\x07 ") == "Call Anna"
    assert clean("?!") == clean("") == clean("x" * (LONGEST + 1)) == ""


def test_a_reminder_is_read_as_it_was_written() -> None:
    daily = Reminder(id="b", text="ü", due=6, language="de", clock="07:00")
    for reminder in (Reminder(id="a", text="x", due=5), daily):
        assert REMINDERS.decode(reminder.write()) == reminder

"""Times of day in English and Chinese."""

from collections.abc import Sequence
from datetime import time

from fleet.workbench.demo_llm.numbers import DIGITS, read_value, unit_after
from fleet.workbench.demo_llm.units import Unit

_COMPARED = frozenset("大小高低亮暗快慢轻响多少暖热冷凉早晚")

_Clock = tuple[int, int]


def find_time(units: Sequence[Unit]) -> time | None:
    """Return the time of day that is said, as `seven thirty`, `half past 7`, `7:30 pm` or `七点半`."""
    words = [unit.text for unit in units]
    for at in range(len(words)):
        found = _colon_time(words, at) or _chinese_time(words, at) or _past_time(words, at) or _english_time(words, at)
        if found is not None:
            return _in_half_day(found, words)
    return None


def _colon_time(words: list[str], at: int) -> _Clock | None:
    if words[at + 1 : at + 2] != [":"] or len(words) < at + 3:
        return None
    hour, minute = words[at], words[at + 2]
    return (int(hour), int(minute)) if hour.isdigit() and minute.isdigit() else None


def _chinese_time(words: list[str], at: int) -> _Clock | None:
    hour = _hour(words, at)
    if hour is None or words[hour[1] : hour[1] + 1] != ["点"] or _is_comparison(words, at):
        return None
    rest = words[hour[1] + 1 :]
    if rest[:1] == ["半"]:
        return hour[0], 30
    if rest[1:2] == ["刻"]:
        return hour[0], 45 if rest[0] == "三" else 15
    minute = read_value(words, hour[1] + 1)
    if minute is None:
        return hour[0], 0
    # 三点五 is 3.5, 三点零五 and 三点五分 are times
    spelt = minute[0] >= 10 or minute[1] - hour[1] > 2 or words[minute[1] : minute[1] + 1] == ["分"]
    return (hour[0], int(minute[0])) if spelt else None


def _is_comparison(words: list[str], at: int) -> bool:
    """Tell 大一点 from 下午一点."""
    return words[at] == "一" and at > 0 and words[at - 1] in _COMPARED


def _past_time(words: list[str], at: int) -> _Clock | None:
    minutes = {"half": 30, "quarter": 15}.get(words[at])
    if minutes is None or words[at + 1 : at + 2] not in (["past"], ["to"]):
        return None
    hour = _hour(words, at + 2)
    if hour is None:
        return None
    return (hour[0], minutes) if words[at + 1] == "past" else ((hour[0] - 1) % 24, 60 - minutes)


def _english_time(words: list[str], at: int) -> _Clock | None:
    hour = _hour(words, at)
    if hour is None:
        return None
    minute = read_value(words, hour[1])
    if minute is not None and 10 <= minute[0] < 60:
        return hour[0], int(minute[0])
    marked = words[hour[1] : hour[1] + 2] == ["o", "clock"] or words[hour[1] : hour[1] + 1] in (["am"], ["pm"])
    said_at = at > 0 and words[at - 1] in {"at", "for", "by"} and not unit_after(words, hour[1])
    return (hour[0], 0) if marked or said_at else None


def _hour(words: list[str], at: int) -> tuple[int, int] | None:
    if words[at : at + 1] and words[at] in DIGITS and words[at + 1 : at + 2] == ["点"]:
        return DIGITS[words[at]], at + 1
    found = read_value(words, at)
    return (int(found[0]), found[1]) if found and found[0] == int(found[0]) and 0 <= found[0] < 24 else None


def _in_half_day(clock: _Clock, words: list[str]) -> time | None:
    hour, minute = clock
    said = " ".join(words)
    chinese = said.replace(" ", "")
    late = any(word in words for word in ("pm", "afternoon", "evening", "tonight", "night"))
    late = late or any(word in chinese for word in ("下午", "晚上", "傍晚", "今晚", "中午"))
    if late and hour < 12 and not ("中午" in chinese and hour == 11):
        hour += 12
    return time(hour % 24, minute) if minute < 60 and hour <= 24 else None

"""Find the date of a day from its usual names: dates, relative days and weekdays, in English and Chinese."""

import re
from datetime import date, timedelta

FORMS = "a date such as 2025-03-01, `today`, `tomorrow` or a day of the week"
"""The accepted forms, as text for the model."""

_RELATIVE = {
    0: ("", "today", "now", "tonight", "current", "currently", "今天", "今日", "今晚", "现在", "当前", "此刻", "今早"),
    1: ("tomorrow", "明天", "明日", "明早", "明晚"),
    2: ("day after tomorrow", "the day after tomorrow", "后天"),
    3: ("大后天",),
    -1: ("yesterday", "昨天", "昨日", "昨晚"),
    -2: ("day before yesterday", "the day before yesterday", "前天"),
}
_DAYS = {word: days for days, words in _RELATIVE.items() for word in words}
_FULL = re.compile(r"(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})日?(?:[t ].*)?")
_SHORT = re.compile(r"(\d{1,2})\s*[-/月]\s*(\d{1,2})\s*[日号]?")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = re.compile(r"(?:(this|next)\s+|on\s+)?([a-z]{3,9})")
_WEEKDAY_ZH = re.compile(r"(这|本|下)?个?(?:周|星期|礼拜)([一二三四五六日天])")
_ZH = {digit: number for number, digit in enumerate("一二三四五六日")} | {"天": 6}


def find_day(text: str, today: date) -> date | None:
    """Return the day that a text names; None if it names none.

    Args:
        text: The name.
        today: The date from which relative days count.
    """
    words = " ".join(text.lower().split()).strip(" .。")
    if words in _DAYS:
        return today + timedelta(days=_DAYS[words])
    try:
        if found := _FULL.fullmatch(words):
            return date(int(found[1]), int(found[2]), int(found[3]))
        if found := _SHORT.fullmatch(words):
            return _nearest(today, int(found[1]), int(found[2]))
    except ValueError:
        return None
    return _find_weekday(words, today)


def _nearest(today: date, month: int, day: int) -> date:
    years = [date(today.year + shift, month, day) for shift in (-1, 0, 1) if _exists(today.year + shift, month, day)]
    if not years:
        raise ValueError("there is no such day")
    return min(years, key=lambda one: abs(one - today))


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _find_weekday(words: str, today: date) -> date | None:
    """Return the next day of that name, which may be today; with `next` or 下 the day in the following week."""
    if found := _WEEKDAY_ZH.fullmatch(words):
        which, wanted = found[1] == "下", _ZH[found[2]]
    elif found := _WEEKDAY.fullmatch(words):
        names = [place for place, name in enumerate(_WEEKDAYS) if name.startswith(found[2])]
        if not names:
            return None
        which, wanted = found[1] == "next", names[0]
    else:
        return None
    if which:
        return today + timedelta(days=7 - today.weekday() + wanted)
    return today + timedelta(days=(wanted - today.weekday()) % 7)

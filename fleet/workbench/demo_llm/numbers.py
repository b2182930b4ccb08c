"""Numbers in English and Chinese, in digits and in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fleet.workbench.demo_llm.units import Unit

_SMALL_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: value for value, word in enumerate(_SMALL_WORDS.split())}
_TENS = {word: 20 + 10 * value for value, word in enumerate(_TENS_WORDS.split())}
DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0, "幺": 1}
_MAGNITUDES = {"十": 10, "百": 100, "千": 1000, "万": 10_000}
_NOT_COUNTED = frozenset("点下些首个张会样起直定般")
_FRACTIONS = {"half": 0.5, "quarter": 0.25}
_LONGEST_NUMBER = 15
_DURATIONS = {
    "second": ("second", "seconds", "sec", "secs", "秒"),
    "minute": ("minute", "minutes", "min", "mins", "分"),
    "hour": ("hour", "hours", "小时", "钟头"),
}
_TOWARDS = frozenset({"to", "at", "as", "is", "到", "为", "成", "至", "是"})
SECONDS = {"second": 1, "minute": 60, "hour": 3600}

Scale = Literal["plain", "percent", "fraction"]


@dataclass(frozen=True, slots=True)
class Number:
    """A number in units `start` up to `end`.

    `percent` counts hundredths and `fraction` the whole of a range; `unit` is second, minute, hour or empty.
    `towards` tells `up to 30` from `up by 30`.
    """

    value: float
    scale: Scale
    unit: str
    start: int
    end: int
    towards: bool


def find_numbers(units: Sequence[Unit], taken: Sequence[bool]) -> tuple[Number, ...]:
    """Return the numbers among the units that belong to no phrase."""
    words = [unit.text for unit in units]
    found: list[Number] = []
    at = 0
    while at < len(words):
        number = None if taken[at] else _number(words, at)
        if number is not None:
            found.append(number)
        at = max(at + 1, number.end if number else 0)
    return tuple(found)


def _number(words: list[str], at: int) -> Number | None:
    found = _fraction(words, at) or _percentage(words, at) or _counted(words, at)
    if found is None:
        return None
    value, scale, end = found
    if scale == "plain" and end < len(words) and words[end] in {"%", "percent"}:
        scale, end = "percent", end + 1
    elif scale == "plain" and words[end : end + 2] == ["per", "cent"]:
        scale, end = "percent", end + 2
    unit = unit_after(words, end)
    if unit and scale == "fraction":
        scale = "plain"
    return Number(value, scale, unit, at, end, at > 0 and words[at - 1] in _TOWARDS)


def _fraction(words: list[str], at: int) -> tuple[float, Scale, int] | None:
    if words[at] in _FRACTIONS:
        return _FRACTIONS[words[at]], "fraction", at + 1
    if words[at : at + 2] == ["一", "半"]:
        return 0.5, "fraction", at + 2
    if words[at] == "半" and (at == 0 or words[at - 1] != "点"):
        return 0.5, "fraction", at + 1
    below = _chinese(words, at)
    if below is None or words[below[1] : below[1] + 2] != ["分", "之"]:
        return None
    above = read_value(words, below[1] + 2)
    if above is None or not below[0]:
        return None
    return above[0] / below[0], "fraction", above[1]


def _percentage(words: list[str], at: int) -> tuple[float, Scale, int] | None:
    if words[at : at + 3] != ["百", "分", "之"]:
        return None
    value = read_value(words, at + 3)
    return None if value is None else (value[0], "percent", value[1])


def _counted(words: list[str], at: int) -> tuple[float, Scale, int] | None:
    sign = words[at] in {"minus", "负", "零下"}
    value = read_value(words, at + sign)
    if value is None:
        hours = words[at : at + 2] in (["an", "hour"], ["a", "minute"]) and words[at - 1 : at] not in (["half"], ["of"])
        return (1.0, "plain", at + 1) if hours else None
    return (-value[0] if sign else value[0]), "plain", value[1]


def read_value(words: list[str], at: int) -> tuple[float, int] | None:
    """Return the number that begins at a word, and where it ends."""
    if at >= len(words):
        return None
    if words[at].lstrip("-")[:1].isdigit() and words[at].isascii() and len(words[at]) <= _LONGEST_NUMBER:
        return _grown(float(words[at]), words, at + 1)
    return _english(words, at) or _chinese(words, at)


def _grown(value: float, words: list[str], at: int) -> tuple[float, int]:
    magnitude = _MAGNITUDES.get(words[at]) if at < len(words) else None
    if magnitude is None or words[at + 1 : at + 3] == ["分", "之"]:
        return value, at
    return value * magnitude, at + 1


def _english(words: list[str], at: int) -> tuple[float, int] | None:
    total = current = 0
    end = start = at + (words[at] == "a" and words[at + 1 : at + 2] in (["hundred"], ["thousand"]))
    while end < len(words):
        word = words[end]
        if word in {"hundred", "thousand"} and (end > start or start > at):
            total, current = _multiplied(total, current, word)
        elif word in _TENS and current % 100 == 0:
            current += _TENS[word]
        elif word in _SMALL and _fits(current, _SMALL[word], end > start):
            current += _SMALL[word]
        elif not (word == "and" and current >= 100 and words[end + 1 : end + 2] and _begins(words[end + 1])):
            break
        end += 1
    if end == start:
        return None
    return _with_decimals(float(total + current), words, end, "point", _SMALL)


def _multiplied(total: int, current: int, word: str) -> tuple[int, int]:
    if word == "hundred":
        return total, max(current, 1) * 100
    return total + max(current, 1) * 1000, 0


def _begins(word: str) -> bool:
    return word in _TENS or word in _SMALL


def _fits(current: int, value: int, started: bool) -> bool:
    return not started or current % 100 == 0 or (current % 100 >= 20 and current % 10 == 0 and 0 < value < 10)


def _chinese(words: list[str], at: int) -> tuple[float, int] | None:
    end = at
    while end < len(words) and (words[end] in DIGITS or words[end] in _MAGNITUDES):
        if words[end : end + 3] == ["百", "分", "之"]:
            break
        end += 1
    span = words[at:end]
    if (
        not span
        or len(span) > _LONGEST_NUMBER
        or span[0] in {"百", "千", "万"}
        or _only_a_word(span, words[end : end + 1])
    ):
        return None
    return _with_decimals(float(_chinese_value(span)), words, end, "点", DIGITS)


def _only_a_word(span: list[str], following: list[str]) -> bool:
    return span == ["一"] and bool(following) and following[0] in _NOT_COUNTED


def _chinese_value(span: list[str]) -> int:
    if not any(character in _MAGNITUDES for character in span):
        return int("".join(str(DIGITS[character]) for character in span))
    total = section = digit = 0
    last = 1
    for character in span:
        if character in DIGITS:
            digit, last = DIGITS[character], (1 if character in "零〇" else last)
        elif character == "万":
            total, section, digit, last = (total + section + digit) * 10_000, 0, 0, 10_000
        else:
            last = _MAGNITUDES[character]
            section, digit = section + max(digit, 1) * last, 0
    # 一百二 leaves out the last magnitude and means 120
    return total + section + digit * (last // 10 if last > 10 and digit else 1)


def _with_decimals(
    value: float, words: list[str], end: int, point: str, digits: dict[str, int]
) -> tuple[float, int] | None:
    if words[end : end + 1] != [point]:
        return value, end
    stop = end + 1
    while stop < len(words) and digits.get(words[stop], 10) < 10:
        stop += 1
    followed = words[stop : stop + 1]
    if stop == end + 1 or (point == "点" and followed and followed[0] in {"十", "分", "半", "钟"}):
        return value, end
    decimals = "".join(str(digits[word]) for word in words[end + 1 : stop])
    return float(f"{int(value)}.{decimals}"), stop


def unit_after(words: list[str], at: int) -> str:
    """Return the unit of time that stands at a word: second, minute, hour or empty."""
    rest = words[at : at + 3]
    while rest[:1] in (["a"], ["an"], ["of"], ["个"]):
        rest = rest[1:]
    if rest[:1] and words[at : at + 2] == ["分", "之"]:
        return ""
    for unit, names in _DURATIONS.items():
        if rest[:1] and (rest[0] in names or "".join(rest[:2]) in names):
            return unit
    return ""

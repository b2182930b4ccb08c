"""Numbers below ten thousand and times of day in English and Chinese, in digits and in words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ONES = "one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORTH = {word: at for at, word in enumerate(f"zero {_ONES} {_TEENS}".split())}
_WORTH |= {word: 20 + 10 * at for at, word in enumerate(_TENS.split())}
_DIGITS = {digit: at for at, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0, "幺": 1}
_MAGNITUDES = {"十": 10, "百": 100, "千": 1000}
SECONDS = {"second": 1, "minute": 60, "hour": 3600}

_ONE, _TEN, _TEEN = (words.replace(" ", "|") for words in (_ONES, _TENS, _TEENS))
_BELOW_100 = f"(?:(?:{_TEN})(?: (?:{_ONE}))?|{_TEEN}|{_ONE}|zero)"
_ENGLISH = rf"\b(?:(?:a|{_ONE}) hundred(?:(?: and)? {_BELOW_100})?|{_BELOW_100})(?: point(?: (?:zero|{_ONE}))+)?\b"
_DIGIT = "[零〇一二两幺三四五六七八九]"
# 三点五 is 3.5; 三点零五, 三点五分 and 三点五十 are times; 一点, 一首 and the like count nothing
_POINT = rf"点(?!零){_DIGIT}++(?![十分半钟刻])"
_CHINESE = rf"(?!一[点下些首个张会样起直定般])(?:{_DIGIT}|十)(?:{_DIGIT}|[十百千]){{0,9}}(?:{_POINT})?"
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w.])-|\bminus |负|零下)?(?:(?P<below>百|{_CHINESE})分之(?P<above>{_CHINESE}|\d+)"
    rf"|(?P<half>一半|(?<!点)半|\bhalf\b)|(?P<quarter>\bquarter\b)|(?P<digits>\d{{1,15}}(?:\.\d+)?)|(?P<english>{_ENGLISH})"
    rf"|(?P<chinese>{_CHINESE})|(?<!half )(?<!of )\b(?P<one>an?)(?= (?:hour|minute)\b))(?P<percent> ?%| per ?cent\b)?"
)
_UNIT = re.compile(
    r"(?: an?\b| of\b|个)* ?(?:(?P<second>sec(?:ond)?s?\b|秒)|(?P<minute>min(?:ute)?s?\b|分(?!之))"
    r"|(?P<hour>hours?\b|小时|钟头))"
)
_TOWARDS = re.compile(r"(?:\b(?:to|at|as|is)|[到为成至是]) ?$")
_TIME = re.compile(
    r"\b0\.(?P<share>25|5) (?P<side>past|to) (?P<past>\d{1,2})\b|(?<![\d.])(?P<hour>\d{1,2})(?: ?: ?(?P<minute>\d\d)\b"
    r"|点(?:(?P<half>半)|(?P<quarter>[13])刻|(?P<after>\d{1,2})(?!\d))?| (?P<spoken>[1-5]\d)\b(?! ?%)"
    r"|(?= ?(?:o clock|am|pm)\b))|\b(?:at|for|by) (?P<full>\d{1,2})\b(?! ?[%.\d]| (?:sec|min|hour))"
)
_LATE = re.compile(r"\bpm\b|afternoon|evening|night|下午|晚上|傍晚|今晚|中午")


@dataclass(frozen=True, slots=True)
class Number:
    """A number between the characters `start` and `end`.

    `share` says that `value` is a part of a whole range (0.3 for `30 %`); `unit` is second, minute, hour or empty;
    `towards` tells `up to 30` from `up by 30`.
    """

    value: float
    share: bool
    unit: str
    towards: bool
    start: int
    end: int


def find_numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text in lower case."""
    for found in _NUMBER.finditer(text):
        measured = _UNIT.match(text, found.end())
        unit = str(measured.lastgroup) if measured else ""
        share = bool(found["half"] or found["quarter"] or found["below"] or found["percent"]) and not unit
        value = (-1 if found["sign"] else 1) * _value(found) / (100 if found["percent"] else 1)
        yield Number(value, share, unit, _TOWARDS.search(text, 0, found.start()) is not None, *found.span())


def find_time(text: str) -> tuple[int, int] | None:
    """Return hour and minute of the time that is said in a text in lower case: `half past 7`, `7:30 pm`, `七点半`."""
    text = re.sub("(?<=[午上晨晚])一点", "1点", text)
    for number in reversed(list(find_numbers(text))):
        text = f"{text[: number.start]}{number.value:g}{text[number.end :]}"
    found = _TIME.search(text)
    if found is None:
        return None
    hour, minute = int(found["hour"] or found["full"] or found["past"]), 0
    if found["past"]:
        minute = 30 if found["share"] == "5" else 15
        hour, minute = (hour, minute) if found["side"] == "past" else (hour - 1, 60 - minute)
    elif found["half"] or found["quarter"]:
        minute = 30 if found["half"] else 15 * int(found["quarter"])
    else:
        minute = int(found["minute"] or found["after"] or found["spoken"] or 0)
    if _LATE.search(text) and hour < 12 and not ("中午" in text and hour == 11):
        hour += 12
    return (hour % 24, minute) if hour <= 24 and minute < 60 else None


def _value(found: re.Match[str]) -> float:
    if found["below"]:
        whole = 100 if found["below"] == "百" else max(_chinese(found["below"]), 1)
        return (float(found["above"]) if found["above"].isdigit() else _chinese(found["above"])) / whole
    if found["digits"] or found["english"] or found["chinese"]:
        return float(found["digits"] or 0) or _english(found["english"] or "") or _chinese(found["chinese"] or "")
    return 1.0 if found["one"] else 0.5 if found["half"] else 0.25


def _english(words: str) -> float:
    whole, _, decimals = words.partition(" point ")
    value = 0
    for word in whole.split():
        value = max(value, 1) * 100 if word == "hundred" else value + _WORTH.get(word, 0)
    return float(f"{value}.{''.join(str(_WORTH[digit]) for digit in decimals.split())}")


def _chinese(numerals: str) -> float:
    whole, _, decimals = numerals.partition("点")
    if not set(whole) & set(_MAGNITUDES):
        value = int("".join(str(_DIGITS[digit]) for digit in whole) or 0)
    else:
        value, digit, last = 0, 0, 1
        for numeral in whole:
            if numeral in _DIGITS:
                digit, last = _DIGITS[numeral], 1 if numeral in "零〇" else last
            else:
                last = _MAGNITUDES[numeral]
                value, digit = value + max(digit, 1) * last, 0
        # 一百二 leaves out the last magnitude and means 120
        value += digit * max(last // 10, 1)
    return float(f"{value}.{''.join(str(_DIGITS[digit]) for digit in decimals)}")

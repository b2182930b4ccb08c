"""Finds numbers in a transcript, in digits or in words, English or Chinese."""

import re
from collections.abc import Iterator

_TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {
    **{word: number for number, word in enumerate([*_ONES, *_TEENS])},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    "oh": 0,
    "hundred": 100,
}
_HAN = {**{sign: number for number, sign in enumerate("零一二三四五六七八九")}, "〇": 0, "两": 2, "百": 100}
_PIECES = re.compile(r"[0-9]+|[a-z]+|[零〇一二两三四五六七八九十百]+")
_CLOCK = re.compile(r"\d:\d\d|o'?clock|点")
_NO_HOUR = 24
_LARGEST_ONE = 9
_SMALLEST_TENS = 20


def numbers_in(text: str) -> list[int]:
    """Return the whole numbers of a text in order: up to a hundred in words, any in digits.

    A time is two numbers: `11:07`, `eleven oh seven` and `十一点零七分` are 11, 7.
    """
    return list(_joined(_pieces(text.lower().replace("百分之", " "))))


def contains_number(text: str, number: int) -> bool:
    """Return whether a text contains the number."""
    return number in numbers_in(text)


def contains_time(reply: str, heard: str) -> bool:
    """Return whether a reply is a time of day and the audio contains its minute, or its hour at a full hour.

    The hour alone proves little, and recognition often gets Chinese hours above twenty wrong. With the hour, the tens
    of the minute are enough: recognition may return 40亿分 for 四十一分.
    """
    hour, minute, *_ = [*_clock(reply), 0, 0] if _CLOCK.search(reply.lower()) else (_NO_HOUR, 0)
    numbers = _clock(heard)
    if hour >= _NO_HOUR or (minute or hour) in numbers:
        return hour < _NO_HOUR
    tens = minute // 10 * 10
    return tens >= _SMALLEST_TENS and hour in numbers and tens in numbers[numbers.index(hour) + 1 :]


def _clock(text: str) -> list[int]:
    """Return the numbers of a text; split a time that was written as one number, such as 1107."""
    numbers: list[int] = []
    for number in numbers_in(text):
        numbers += divmod(number, 100) if 100 < number < 100 * _NO_HOUR else [number]
    return numbers


def _pieces(text: str) -> Iterator[tuple[int, bool]]:
    """Yield numbers, and whether the next number may be their last digit (`sixty` `two`)."""
    for piece in _PIECES.findall(text):
        if piece.isdigit():
            yield int(piece), False
        elif piece in _WORDS:
            yield _WORDS[piece], _SMALLEST_TENS <= _WORDS[piece] < 100
        elif not piece.isascii():
            yield _han(piece), False


def _joined(pieces: Iterator[tuple[int, bool]]) -> Iterator[int]:
    waiting: int | None = None
    for number, open_ in pieces:
        if waiting is not None and 0 < number <= _LARGEST_ONE and not open_:
            yield waiting + number
            waiting = None
            continue
        if waiting is not None:
            yield waiting
        waiting = number if open_ else None
        if not open_:
            yield number
    if waiting is not None:
        yield waiting


def _han(piece: str) -> int:
    if piece in ("百", "一百"):
        return 100
    tens, ten, ones = piece.rpartition("十")
    if not ten:
        return int("".join(str(_HAN[sign]) for sign in piece if sign != "百") or "0")
    return 10 * (_HAN.get(tens[-1:], 1) if tens else 1) + _HAN.get(ones[:1], 0)

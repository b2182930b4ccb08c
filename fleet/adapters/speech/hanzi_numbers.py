"""Spell the numbers in Chinese text as Hanzi, as a person reads them aloud."""

import re
from collections.abc import Callable
from re import Match

DIGITS = "零一二三四五六七八九"
_PLACES = ("千", "百", "十", "")
_MYRIADS = ("", "万", "亿", "万亿")
_LONGEST_NUMBER = 16
"""Longer numbers are read digit by digit, like telephone numbers."""
_CODE_DIGITS = 7
"""A number of this length or longer without separators is more likely a code than a quantity."""

_UNITS = {
    "km/h": "公里每小时", "kWh": "千瓦时", "km": "公里", "cm": "厘米", "mm": "毫米", "kg": "公斤", "mg": "毫克",
    "ml": "毫升", "mL": "毫升",
    "kW": "千瓦", "Hz": "赫兹", "m": "米", "g": "克", "L": "升", "W": "瓦", "V": "伏", "A": "安",
}  # fmt: skip
_COUNTED = (
    "个|点|小时|分钟|天|年前|年后|次|盏|台|首|位|种|件|条|只|张|本|块|秒钟|周|层|间|份|杯|瓶|倍|米|公里|公斤|升|克"
)
"""Measure words and units before which 2 is read 两."""

_NUMBER = r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SIGNED = rf"(?<![\w.])[-−](?={_NUMBER})"
_WIDE = str.maketrans("０１２３４５６７８９％：．", "0123456789%:.")


def spell_numbers(text: str) -> str:
    """Return the text with all numbers in Hanzi: dates, times, percentages, amounts, ranges, quantities and codes."""
    text = text.translate(_WIDE)
    for pattern, spell in _RULES:
        text = pattern.sub(spell, text)
    return text


def spell_quantity(number: str) -> str:
    """Return the reading of a decimal number without sign and separators: `10.5` is 十点五."""
    whole, _, fraction = number.partition(".")
    spelled = _spell_whole(whole)
    return f"{spelled}点{_spell_digits(fraction)}" if fraction else spelled


def _spell_whole(digits: str) -> str:
    stripped = digits.lstrip("0")
    if len(stripped) > _LONGEST_NUMBER or (len(digits) > 1 and digits[0] == "0"):
        return _spell_digits(digits)
    if not stripped:
        return DIGITS[0]
    groups = [stripped[max(0, end - 4) : end] for end in range(len(stripped), 0, -4)]
    spelled = "".join(_spell_group(group, rank) for rank, group in reversed(list(enumerate(groups))))
    spelled = re.sub("零+", "零", spelled).rstrip("零")
    return spelled.removeprefix("一") if spelled.startswith("一十") else spelled


def _spell_group(group: str, rank: int) -> str:
    """Return the reading of up to four digits with their myriad; the caller removes repeated 零."""
    if not group.strip("0"):
        return DIGITS[0]
    places = _PLACES[-len(group) :]
    spelled = "".join(
        DIGITS[int(digit)] + (place if digit != "0" else "") for digit, place in zip(group, places, strict=True)
    )
    spelled = re.sub("零+", "零", spelled)
    return spelled.rstrip("零") + _MYRIADS[rank] + ("零" if group.endswith("0") and rank else "")


def _spell_digits(digits: str) -> str:
    return "".join(DIGITS[int(digit)] for digit in digits)


def _spell_amount(number: str) -> str:
    plain = number.replace(",", "")
    if len(plain) >= _CODE_DIGITS and plain == number and "." not in plain:
        return _spell_digits(plain) if not plain.endswith("0000") else spell_quantity(plain)
    return spell_quantity(plain)


def _date(found: Match[str]) -> str:
    year, month, day = found.groups()
    return f"{_spell_digits(year)}年{_spell_whole(str(int(month)))}月{_spell_whole(str(int(day)))}日"


def _time(found: Match[str]) -> str:
    hour, minute, second = (int(part) if part else 0 for part in found.groups())
    if hour > 24 or minute > 59 or second > 59:
        return found[0]
    spoken = f"{'两' if hour == 2 else _spell_whole(str(hour))}点"
    if minute == 30 and not second:
        return f"{spoken}半"
    if minute or second:
        spoken += f"{'零' if minute < 10 else ''}{_spell_whole(str(minute)) if minute else ''}分"
    return spoken + (f"{_spell_whole(str(second))}秒" if second else "")


def _degrees(found: Match[str]) -> str:
    sign, number, scale = found.groups()
    unit = {"C": "摄氏度", "F": "华氏度"}.get(scale or "", "摄氏度" if "℃" in found[0] else "度")
    return f"{'零下' if sign else ''}{_spell_amount(number)}{unit}"


def _rule(pattern: str, spell: Callable[[Match[str]], str]) -> tuple[re.Pattern[str], Callable[[Match[str]], str]]:
    return re.compile(pattern), spell


_UNIT = "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
# The order matters: special rules come first and leave no digits behind for the general ones.
_RULES = (
    _rule(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)", _date),
    _rule(r"(?<!\d)(\d{4})[-–—~～至到](?=\d{4}年)", lambda found: f"{_spell_digits(found[1])}到"),
    _rule(r"(?<!\d)\d{4}(?=年)", lambda found: _spell_digits(found[0])),
    _rule(
        r"(?<!\d)(?:\d{3,4}-\d{7,8}|(?:\d{3}-)?\d{3}-\d{4})(?!\d)",
        lambda found: _spell_digits(found[0].replace("-", "")),
    ),
    _rule(r"\d+(?:\.\d+){2,}", lambda found: "点".join(map(_spell_digits, found[0].split(".")))),
    _rule(r"(?<=:\d\d)\s?[-–—~～]\s?(?=\d{1,2}:\d\d)", lambda _: "到"),
    _rule(r"(?<![\d:])(\d{1,2}):(\d{2})(?::(\d{2}))?(?![\d:])", _time),
    _rule(rf"({_SIGNED})?({_NUMBER})\s?(?:°\s?([CF])?|℃)", _degrees),
    _rule(r"(?<=[\d%℃度])\s?[-–—~～]\s?(?=\d)", lambda _: "到"),
    _rule(_SIGNED, lambda _: "负"),
    _rule(rf"({_NUMBER})\s?%", lambda found: f"百分之{_spell_amount(found[1])}"),
    _rule(
        r"(?<![\d/])(\d{1,3})/(\d{1,3})(?![\d/])", lambda found: f"{_spell_whole(found[2])}分之{_spell_whole(found[1])}"
    ),
    _rule(rf"[¥￥]\s?({_NUMBER})", lambda found: f"{_spell_amount(found[1])}元"),
    _rule(rf"\$\s?({_NUMBER})", lambda found: f"{_spell_amount(found[1])}美元"),
    _rule(rf"({_NUMBER})\s?({_UNIT})(?![A-Za-z])", lambda found: _spell_amount(found[1]) + _UNITS[found[2]]),
    _rule(rf"(?<![\d.])2(?=(?:{_COUNTED}))", lambda _: "两"),
    _rule(_NUMBER, lambda found: _spell_amount(found[0])),
    _rule(r"\d+", lambda found: _spell_digits(found[0])),
)

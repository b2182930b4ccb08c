"""Timers and reminders: the one wish for which the demo model knows a tool by its name.

What somebody wants to be reminded of may be any words, so no comparison with the tool's description can find them.
"""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from fleet.workbench.demo_llm.arguments import Arguments
from fleet.workbench.demo_llm.numbers import SECONDS, find_numbers, find_time
from fleet.workbench.demo_llm.results import ToolResult
from fleet.workbench.demo_llm.schemas import Scalar
from fleet.workbench.demo_llm.words import HAN, Language, say

TOOL = "set_reminder"

_WHEN = r"(?:in|at|after|on|every|tomorrow|today|tonight)\b"
_WISHES = (
    re.compile(rf"\bremind me (?P<when>{_WHEN}.*?) (?:to|that|about|of) (?P<what>.+)", re.IGNORECASE),
    re.compile(rf"\bremind me (?:to|that|about|of) (?P<what>.+?) (?P<when>{_WHEN}.+)", re.IGNORECASE),
    re.compile(r"(?P<when>.+?)[,，]?提醒我(?P<what>.+)"),
    re.compile(r"提醒我(?P<when>.+?(?:后|点半|点(?!半)|分(?!钟)))(?P<what>.+)"),
    re.compile(r"\b(?:timer|alarm|wake me)\b(?P<when>.+)(?P<what>)", re.IGNORECASE),
    re.compile(r"(?P<when>.+?)(?P<what>)(?:倒计时|闹钟|计时器|叫我起床|叫醒我)"),
)
_DAILY = re.compile(r"\bevery (?:day|morning|evening)\b|\bdaily\b|每天|每日|每晚|每早", re.IGNORECASE)
_TOMORROW = re.compile(r"\btomorrow\b|明天|明早|明晚", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wish:
    """The arguments of the tool, and the language in which it was wished."""

    arguments: Arguments
    language: Language


def wish(text: str, offered: Collection[str]) -> Wish | None:
    """Return what a text wants to be reminded of, if the tool is offered; else None.

    The words around the reason tell the language: "remind me in ten seconds to buy 豆浆" is said in English.
    """
    plain = re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text)).strip(" .。!！?？")
    if TOOL not in offered:
        return None
    for form in _WISHES:
        if found := form.search(plain):
            when = _when(found["when"].lower())
            if when:
                around = plain[: found.start("what")] + plain[found.end("what") :]
                language: Language = "zh" if re.search(f"[{HAN}]", around) else "en"
                return Wish({"text": _what(found["what"], language), **when}, language)
    return None


def tell(arguments: Arguments, result: ToolResult, language: Language) -> str | None:
    """Return what is said of a reminder that was set; None if it was not."""
    if result.outcome != "ok":
        return None
    if "in_seconds" in arguments:
        seconds = int(arguments["in_seconds"])
        unit = next(name for name in ("hour", "minute", "second") if seconds % SECONDS[name] == 0)
        count = seconds // SECONDS[unit]
        return say(f"remind_in_{unit}", language, count, "s" if count > 1 else "")
    return say("remind_at", language, arguments["time"])


def _when(text: str) -> dict[str, Scalar] | None:
    spans = [number for number in find_numbers(text) if number.unit]
    if spans:
        return {"in_seconds": max(1, round(sum(one.value * SECONDS[one.unit] for one in spans)))}
    clock = find_time(text)
    if clock is None:
        return None
    found: dict[str, Scalar] = {"time": f"{clock[0]:02}:{clock[1]:02}"}
    if _DAILY.search(text):
        return {**found, "daily": True}
    return {**found, "date": "tomorrow"} if _TOMORROW.search(text) else found


def _what(text: str, language: Language) -> str:
    said = text.strip(" ,，")
    if not said:
        return say("time_is_up", language)
    return f"{said[:1].upper()}{said[1:]}{'。' if language == 'zh' else '.'}"

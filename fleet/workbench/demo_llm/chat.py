"""What the demo model says without a tool: greetings, the clock, what it can do, and that it did not understand."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from fleet.workbench.demo_llm.concepts import small_talk
from fleet.workbench.demo_llm.lexicon import Language, label
from fleet.workbench.demo_llm.naming import LOOKING, say_tool
from fleet.workbench.demo_llm.reading import Reading
from fleet.workbench.demo_llm.schemas import Tool
from fleet.workbench.demo_llm.units import PAUSES, texts

_MOST_ABILITIES, _MOST_EXAMPLES = 8, 3
_LONGEST_ECHO = 80

_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_EXPLANATIONS: dict[Language, str] = {
    "en": " I am only a demo without a language model. ",
    "zh": "我只是一个没有语言模型的演示程序。",
}
_WEEKDAYS = "一二三四五六日"


def make_small_talk(reading: Reading, tools: Sequence[Tool], now: datetime) -> str | None:
    """Return an answer to small talk, or None when the utterance is something else."""
    if reading.has("negation"):
        return None
    if told := tell_clock(reading, now):
        return told
    for talk in small_talk().values():
        if any(_says(reading, phrase, talk.extra) for phrase in (*talk.en, *talk.zh)):
            said = talk.reply_zh if reading.language == "zh" else talk.reply_en
            return said or tell_abilities(tools, reading.language)
    return None


def tell_abilities(tools: Sequence[Tool], language: Language) -> str:
    """Return what can be asked for with the offered tools."""
    names = list(dict.fromkeys(say_tool(tool, language) for tool in tools))
    if language == "zh":
        return f"我能报时间。{_listed_zh(names)}我是演示模型，没有语言模型。"
    return f"I can tell the time. {_listed_en(names)}I am a demo without a language model."


def tell_not_understood(reading: Reading, tools: Sequence[Tool], *, again: bool = False) -> str:
    """Return that this is a demo which did not understand, and some of what would be understood.

    Args:
        reading: What was said.
        tools: What is offered.
        again: Whether the answer before was such a one too: then it is short.
    """
    names = list(dict.fromkeys(say_tool(tool, reading.language) for tool in tools))[:_MOST_EXAMPLES]
    heard = reading.text.rstrip(" .。?？!！")
    heard = heard if len(heard) <= _LONGEST_ECHO else heard[:_LONGEST_ECHO] + "…"
    refusal, explanation = _refusal(reading, heard, bool(tools))
    return refusal if again else f"{refusal}{explanation}{_examples(names, reading.language)}"


def explains_itself(answer: str) -> bool:
    """Return whether an answer said that this is a demo."""
    return _EXPLANATIONS["en"].strip() in answer or _EXPLANATIONS["zh"] in answer


def _refusal(reading: Reading, heard: str, offered: bool) -> tuple[str, str]:
    known = reading.names("topic") and not reading.has("negation")
    clear = offered and known and (reading.names("action") or reading.numbers or reading.mood == "query")
    if reading.language == "zh":
        quoted = f"“{heard}”" if heard else ""
        start = f"抱歉，没有工具能做{quoted}。" if clear else f"抱歉，我没有听懂{quoted}。"
        return start, _EXPLANATIONS["zh"]
    quoted = f"“{heard}”" if heard else "that"
    start = f"I have no tool for {quoted}." if clear else f"I did not understand {quoted}."
    return start, _EXPLANATIONS["en"]


def _examples(names: Sequence[str], language: Language) -> str:
    if not names:
        return (_listed_zh(names) if language == "zh" else _listed_en(names)).strip()
    if language == "zh":
        return f"比如可以让我{'、'.join(names)}。"
    return f"For example, ask me to {' or '.join([', '.join(names[:-1]), names[-1]] if names[1:] else names)}."


def _listed_en(names: Sequence[str]) -> str:
    if not names:
        return "No tools are offered to me now. "
    shown = list(names[:_MOST_ABILITIES])
    last = f" or {shown.pop()}" if len(shown) > 1 else ""
    more = f", and {len(names) - _MOST_ABILITIES} other things" if len(names) > _MOST_ABILITIES else ""
    return f"You can ask me to {', '.join(shown)}{last}{more}. "


def _listed_zh(names: Sequence[str]) -> str:
    if not names:
        return "现在没有给我任何工具。"
    more = f"，还有{len(names) - _MOST_ABILITIES}项别的" if len(names) > _MOST_ABILITIES else ""
    return f"你可以让我{'、'.join(names[:_MOST_ABILITIES])}{more}。"


def _says(reading: Reading, phrase: str, extra: int) -> bool:
    """Return whether the utterance is the phrase with at most `extra` further words."""
    said = tuple(unit.text for unit in reading.units if unit.text not in PAUSES)
    wanted = texts(phrase)
    found = any(said[at : at + len(wanted)] == wanted for at in range(len(said) - len(wanted) + 1))
    return found and len(said) - len(wanted) <= extra


def tell_clock(reading: Reading, now: datetime) -> str | None:
    """Return the time or the date if that is all that is asked for, or None."""
    if reading.has("negation"):
        return None
    others = set(reading.names("topic", "color", "value")) - {"time", "date", *_DAYS}
    if reading.has("time") and reading.names("value"):
        return None
    if others or reading.words or reading.runs or reading.numbers or reading.names("action"):
        return None
    if reading.mood != "query" and not (reading.has("time") or reading.has("date")):
        return None
    if reading.has("time"):
        return _time_sentence(now, reading.language)
    if not reading.has("date"):
        return None
    day = next((name for name in reading.names("value") if name in _DAYS), "today")
    return _date_sentence(now + timedelta(days=_DAYS[day]), day, reading.language)


def _time_sentence(now: datetime, language: Language) -> str:
    if language == "zh":
        minutes = f"{now.minute}分" if now.minute else "整"
        return f"{LOOKING}现在是{now.hour}点{minutes}。"
    half = "AM" if now.hour < 12 else "PM"
    return f"It is {now.hour % 12 or 12}:{now.minute:02d} {half}."


def _date_sentence(now: datetime, day: str, language: Language) -> str:
    if language == "zh":
        return f"{label(day, 'zh')}是{now.year}年{now.month}月{now.day}日，星期{_WEEKDAYS[now.weekday()]}。"
    weekdays = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    months = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")
    month = (*months, "November", "December")[now.month - 1]
    be = "was" if day == "yesterday" else "is"
    return f"{day.capitalize()} {be} {weekdays[now.weekday()]}, {month} {now.day}, {now.year}."

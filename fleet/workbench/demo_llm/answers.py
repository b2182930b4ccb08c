"""What is said: confirmations, values, failures, questions back, small talk. Plain sentences, the first one short."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from fleet.core.text.speakable import speakable
from fleet.workbench.demo_llm.arguments import component
from fleet.workbench.demo_llm.naming import (
    color_of,
    is_action,
    say_argument,
    say_keys,
    say_subject,
    say_tool,
    say_value,
)
from fleet.workbench.demo_llm.reading import PAUSES, Reading
from fleet.workbench.demo_llm.results import GENERAL_KEYS, Leaf, ToolResult
from fleet.workbench.demo_llm.schemas import Choice, Property, Scalar, Tool
from fleet.workbench.demo_llm.words import HAN, Language, concept, dictionary, label, say, split

_MOST_VALUES, _MOST_CHOICES, _MOST_ABILITIES = 6, 6, 8
_LONGEST_SPEECH, _LONGEST_REASON = 600, 160
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}


def tell_done(tool: Tool, given: Mapping[str, Scalar], language: Language) -> str:
    """Return what is now so after a call that worked."""
    told = _changes(tool, given, language)
    if told:
        return say("changed", language, say("and", language).join(told))
    chosen = [choice for entry in tool.properties for choice in entry.choices if choice.value == given.get(entry.name)]
    acted = [label(name, language) for choice in chosen for name in choice.concepts if is_action(name)]
    return say("done", language, *acted[:1] or [say_tool(tool, language)])


def tell_failure(tool: Tool, result: ToolResult, language: Language) -> str:
    """Return that it did not work, or that nobody knows, and why."""
    reason = clean(result.reason)[:_LONGEST_REASON].rstrip(" .。")
    start = say("failed" if result.outcome == "failed" else "unclear", language, say_tool(tool, language))
    return start + say("reason" if reason else "no_reason", language, reason)


def tell_result(tool: Tool, result: ToolResult, reading: Reading) -> str:
    """Return what a tool that only reads has answered, as far as it was asked for."""
    language, topics = reading.language, reading.names("topic")
    leaves = result.find(reading)
    if not leaves and not result.leaves:
        if isinstance(result.data, bool):
            return say("yes" if result.data else "no", language)
        return clean(result.text) or say("empty", language)
    if not leaves and topics and not reading.has("status") and not set(topics) & set(tool.topics):
        return clean(result.speech) or say("not_reported", language, label(topics[0], language))
    said = [_value_sentence(leaf, language) for leaf in (leaves or result.leaves)[:_MOST_VALUES]]
    return say("looking", language) + ("" if language == "zh" else " ").join(said)


def ask_value(tool: Tool, entry: Property, language: Language) -> str:
    """Return the question for an argument that was not said."""
    subject, key = say_subject(tool, entry, {}, language), say_keys([entry.name], language)
    context, options = entry.title.names("topic"), ""
    if entry.choices:
        said = [say_value(choice.value, context, language) for choice in entry.choices[:_MOST_CHOICES]]
        options = say("choices", language, say("or", language).join(said))
        return say(
            "which_value" if _tells_state(entry, entry.choices[0]) else "which_choice",
            language,
            subject if _tells_state(entry, entry.choices[0]) else key,
            options,
        )
    if entry.kind == "string":
        return say("which_text", language, key, "")
    if entry.minimum is not None and entry.maximum is not None:
        options = say("range", language, entry.minimum, entry.maximum)
    return say("which_number", language, subject, options)


def ask_which(tools: Sequence[Tool], language: Language) -> str:
    """Return the question which of several tools is meant."""
    names = dict.fromkeys(say_tool(tool, language) for tool in tools[:_MOST_CHOICES])
    return say("which_tool", language, say("or", language).join(names))


def ask_goal(tool: Tool, entry: Property, language: Language) -> str:
    """Return that the current value could not be found, so that a relative change needs a number."""
    return say("no_current", language, say_subject(tool, entry, {}, language))


def clean(text: str) -> str:
    """Return prose without Markdown and line breaks, cut at 600 characters."""
    plain = " ".join(said for line in text.splitlines() if (said := speakable(line)))
    return plain if len(plain) <= _LONGEST_SPEECH else plain[:_LONGEST_SPEECH].rsplit(" ", 1)[0] + "…"


def make_small_talk(reading: Reading, tools: Sequence[Tool]) -> str | None:
    """Return an answer to small talk, or None when the utterance is something else."""
    said = re.sub(f"[{re.escape(PAUSES)}]", "", re.sub("['’-]", " ", reading.text.lower()))
    for talk in () if reading.has("negation") else dictionary().talk.values():
        phrases = "|".join(sorted(split(f"{talk['en']}|{talk['zh']}"), key=len, reverse=True))
        left = re.sub(rf"(?<![a-z])(?:{phrases})(?![a-z])", "", said)
        if left != said and len(re.findall(rf"[{HAN}]|[a-z]+|\d+", left)) <= talk["extra"]:
            return talk.get(f"reply_{reading.language}") or _tell_abilities(tools, reading.language)
    return None


def _tell_abilities(tools: Sequence[Tool], language: Language) -> str:
    names = list(dict.fromkeys(say_tool(tool, language) for tool in tools))
    shown, more = names[:_MOST_ABILITIES], len(names) - _MOST_ABILITIES
    listed = ("、" if language == "zh" else ", ").join(shown)
    listed = say("others", language, listed, more) if more > 0 else listed
    return say("abilities" if names else "no_abilities", language, listed)


def tell_clock(reading: Reading, now: datetime) -> str | None:
    """Return the time or the date if that is all that is asked for, or None."""
    asked = {*reading.names("topic", "color", "value")}
    days = [name for name in _DAYS if name in asked]
    other = asked - {"time", "date", *_DAYS} or reading.words or reading.runs or reading.numbers
    if other or reading.names("action") or reading.has("negation") or not asked & {"time", "date"}:
        return None
    if "time" in asked:
        sentence = "time" if now.minute else "full_hour"
        told = say(sentence, reading.language, now, now.hour % 12 or 12, "AM" if now.hour < 12 else "PM")
        return None if days else say("looking", reading.language) + told
    day = days[0] if days else "today"
    date = now + timedelta(days=_DAYS[day])
    # The process keeps the locale C, in which the names of days and months are English
    return say(
        "date", reading.language, date, label(day, reading.language).capitalize(), "一二三四五六日"[date.weekday()]
    )


def _changes(tool: Tool, given: Mapping[str, Scalar], language: Language) -> list[str]:
    color, times = color_of(tool, given), {entry.title.text: given.get(entry.name) for entry in tool.properties}
    hour, minute = times.get("hour"), times.get("minute")
    clock = f"{hour}:{minute:02d}" if isinstance(hour, int) and isinstance(minute, int) else ""
    if color or clock:
        subject = say_subject(tool, None, given, language)
        return [say("set_to", language, subject, label(color, language) if color else clock)]
    told = [_change(tool, entry, given, language) for entry in tool.properties if _says_how(entry, given)]
    switched = [action == "on" for action in tool.verbs if action in {"on", "off"}]
    return told or [_is_switched(tool, given, on, language) for on in switched[:1]]


def _says_how(entry: Property, given: Mapping[str, Scalar]) -> bool:
    """Tell an argument that sets something from one that only says where or which."""
    value = given.get(entry.name)
    chosen = [choice for choice in entry.choices if choice.value == value]
    free = entry.kind == "string" and not entry.choices
    return not (value is None or free or (chosen and not _tells_state(entry, chosen[0])))


def _tells_state(entry: Property, choice: Choice) -> bool:
    """Tell `mode="cool"` from `room="kitchen"`, `device="fan"` and `action="next"`."""
    named = {*choice.concepts, *entry.concepts} - {"theme", "color"}
    placed = named & {"room", "device"} or any(concept(name).kind == "place" for name in named)
    thing = any(is_action(name) or concept(name).kind == "topic" for name in choice.concepts - {"language"})
    return entry.title.has("theme") or not (placed or thing)


def _change(tool: Tool, entry: Property, given: Mapping[str, Scalar], language: Language) -> str:
    value, part = given[entry.name], component(entry)
    if isinstance(value, bool) or str(value).lower() in {"on", "off"}:
        return _is_switched(tool, given, value is True or str(value).lower() == "on", language)
    subject = say_keys([part], language) if part else say_subject(tool, entry, given, language)
    return say("set_to", language, subject, say_argument(entry, value, language))


def _is_switched(tool: Tool, given: Mapping[str, Scalar], on: bool, language: Language) -> str:
    subject = say_subject(tool, None, given, language) or say("it", language)
    return say("switched", language, subject, say("on" if on else "off", language))


def _value_sentence(leaf: Leaf, language: Language) -> str:
    last, above = say_keys(leaf.path[-1:], language), say_keys(leaf.path[-2:-1], language)
    if isinstance(leaf.value, bool):
        if leaf.path[-1].lower().endswith(("ing", "ed")):
            return say("is_doing" if leaf.value else "not_doing", language, above or "device", last)
        of_above = language == "zh" or last in {"on", "power", "state", "enabled"}
        return say("is_on" if leaf.value else "is_off", language, above if above and of_above else last)
    keys = leaf.path[-2:] if leaf.own.text.lower() in GENERAL_KEYS else leaf.path[-1:]
    value = say_value(leaf.value, (*leaf.own.names("topic"), *leaf.above.names("topic")), language)
    return say("value", language, say_keys(keys, language), value)

"""How tools, arguments, keys and values are called in a spoken sentence."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

from fleet.workbench.demo_llm.concepts import COLORS
from fleet.workbench.demo_llm.lexicon import Language, Mark, concept, label
from fleet.workbench.demo_llm.reading import MEASURES, Reading, read
from fleet.workbench.demo_llm.schemas import Property, Scalar, Tool
from fleet.workbench.demo_llm.units import has_han, spaced

_LONGEST_DESCRIPTION: dict[Language, int] = {"en": 48, "zh": 14}
_SILENT = frozenset({"self", "device", "tool", "mcp"})
_VAGUE = frozenset({"value", "level", "power", "status", "on", "off", "set"})
_CHANGED = {"increase": "turn up", "decrease": "turn down"}
_ADVERBS = frozenset({"around", "forward", "forwards", "back", "backward", "left", "right", "home", "to", "off", "on"})
_OPENED = frozenset({"curtain", "window", "door"})
_SPOKEN_VERBS = {
    "on": "turn on",
    "off": "turn off",
    "get": "tell",
    "ask": "tell",
    "fetch": "tell",
    "query": "tell",
    "read": "tell",
    "list": "list",
}

LOOKING = "我看看，"
"""Begins what had to be looked up, as people do; a voice can say it before it has synthesised the rest."""


def say_tool(tool: Tool, language: Language) -> str:
    """Return what a tool does as a verb phrase: `set the volume`, `设置音量`."""
    return _say_tool_zh(tool) if language == "zh" else _say_tool_en(tool)


def _say_tool_en(tool: Tool) -> str:
    units = [unit.text for unit in tool.title.units]
    verb = _verb(tool.title)
    described = _short_description(tool, "en")
    if verb is None and described:
        return described[:1].lower() + described[1:]
    if verb is None:
        return "use " + " ".join(word for word in units if word not in _SILENT)
    within = [label(name, "en") for mark in tool.title.marks if mark.start == verb.start for name in mark.names]
    if len(within) > 1:
        return f"{_CHANGED.get(verb.names[0], verb.names[0])} the {within[0]}"
    said = " ".join(units[verb.start : verb.end])
    after = units[verb.end :]
    before = [word for word in units[: verb.start] if word not in _SILENT]
    nouns = after if after and not _carried(tool, verb) else [*_carried(tool, verb).split(), *after] or before
    article = "" if nouns[:1] and nouns[0] in _ADVERBS else "a " if "take" in verb.names else "the "
    return f"{_SPOKEN_VERBS.get(said, said)} {article if nouns else ''}{' '.join(nouns)}".strip()


def _short_description(tool: Tool, language: Language) -> str:
    """Return the description's first clause when it is in this language and short enough to be said."""
    first = re.split(r"[.。,，;；:：\n(（]", tool.description.strip(), maxsplit=1)[0].strip()
    longest = _LONGEST_DESCRIPTION[language]
    return first if 1 < len(first) <= longest and has_han(first) == (language == "zh") else ""


def _carried(tool: Tool, verb: Mark) -> str:
    """Return the thing that a property belongs to when it stands before the verb: `fan_set_speed`."""
    after = {name for mark in tool.title.marks if mark.start >= verb.end for name in mark.names}
    said = [
        tool.title.surface(mark)
        for mark in tool.title.marks
        if mark.end <= verb.start and concept(mark.names[0]).kind in {"topic", "place"} and not after & set(mark.names)
    ]
    return " ".join(said)


def _say_tool_zh(tool: Tool) -> str:
    verb = _verb(tool.title)
    described = _short_description(tool, "zh")
    if described and (verb is None or tool.title.words):
        return described
    kinds = {"topic", "place", "value", "generic"}
    nouns = [
        label(mark.names[0], "zh")
        for mark in tool.title.marks
        if concept(mark.names[0]).kind in kinds and mark.names[0] != "speaker"
    ]
    nouns += [unit.text for unit in tool.title.words]
    nouns += list(tool.title.runs)
    return (label(verb.names[0], "zh") if verb else "使用") + "".join(dict.fromkeys(nouns))


def _verb(title: Reading) -> Mark | None:
    found = [
        mark for mark in title.marks if concept(mark.names[0]).kind == "action" or {"get", "ask"} & set(mark.names)
    ]
    return found[0] if found else None


def say_subject(tool: Tool, entry: Property | None, arguments: Mapping[str, Scalar], language: Language) -> str:
    """Return what an argument sets: `the screen brightness`, `客厅灯`."""
    own = (
        []
        if entry is None
        else [name for name in entry.reading.names("topic", "generic") if name not in _VAGUE | MEASURES]
    )
    things = [name for name in tool.topics if name not in own][: 2 if not own else 1]
    places = _places(tool, arguments)
    names = dict.fromkeys([*places, *_chosen_topics(tool, arguments), *things, *own])
    if language == "zh":
        said = "".join(label(name, "zh") for name in names)
        return said or (spaced(entry.name) if entry else "")
    said = " ".join(label(name, "en") for name in names)
    return f"the {said}" if said else f"the {spaced(entry.name).lower()}" if entry else ""


def _places(tool: Tool, arguments: Mapping[str, Scalar]) -> tuple[str, ...]:
    given = (name for value in arguments.values() if isinstance(value, str) for name in read(value).names("place"))
    return tool.title.names("place") or tuple(given)[:1]


def _chosen_topics(tool: Tool, arguments: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Return the thing named by an argument: `switch(device="fan", on=true)`."""
    for entry in tool.properties:
        for choice in entry.choices:
            if arguments.get(entry.name) == choice.value:
                found = read(spaced(str(choice.value))).names("topic")
                if found and "light_mode" not in choice.concepts:
                    return found[:1]
    return ()


def say_state(tool: Tool, arguments: Mapping[str, Scalar], on: bool, language: Language) -> str:
    """Return `on`, `off`, `open` or `closed`; in Chinese `打开` or `关闭`."""
    if language == "zh":
        return "打开" if on else "关闭"
    if _OPENED & {*tool.topics, *_chosen_topics(tool, arguments)}:
        return "open" if on else "closed"
    return "on" if on else "off"


def say_measured(entry: Property, value: float, language: Language) -> str:
    """Return a number with the measure that its argument is named after: `600 seconds`; empty when it has none."""
    measure = next((name for name in ("second", "minute", "hour") if entry.reading.has(name)), "")
    if not measure:
        return ""
    if language == "zh":
        return f"{value:g}{ {'second': '秒', 'minute': '分钟', 'hour': '小时'}[measure] }"
    return f"{value:g} {measure}{'' if value == 1 else 's'}"


def say_value(value: Scalar, context: Sequence[str], language: Language) -> str:
    """Return a value in words; `context` are the concepts that it belongs to."""
    if isinstance(value, bool):
        return {"en": ("no", "yes"), "zh": ("否", "是")}[language][value]
    if isinstance(value, int | float):
        return _with_measure(f"{value:g}" if abs(value) < 1e15 else str(value), value, context, language)
    if language == "en":
        return spaced(value).strip() if value.islower() and "." not in value else value
    return _value_zh(value, context)


def _with_measure(number: str, value: float, context: Sequence[str], language: Language) -> str:
    if {"battery", "humidity"} & set(context) and 0 <= value <= 100:
        return f"百分之{number}" if language == "zh" else f"{number} percent"
    if "temperature" in context:
        return f"{number}度" if language == "zh" else f"{number} degrees"
    return number


def _value_zh(value: str, context: Sequence[str]) -> str:
    if "theme" in context and value.lower() in {"light", "dark"}:
        return {"light": "浅色", "dark": "深色"}[value.lower()]
    known = {"strong": "强", "weak": "弱", "medium": "中等", "cellular": "蜂窝网络", "none": "无"}
    if value.lower() in known:
        return known[value.lower()]
    spelt = read(spaced(value))
    names = spelt.names("value", "color", "place", "action")
    return label(names[0], "zh") if names and len(spelt.units) <= 3 and not spelt.words else value


def say_keys(keys: Sequence[str], language: Language) -> str:
    """Return the keys of a result as a noun: `battery level`, `电量`."""
    phrase = spaced(" ".join(keys)).lower()
    if language == "en":
        return phrase
    found = read(phrase)
    names = [mark.names[0] for mark in found.marks if concept(mark.names[0]).kind not in {"filler", "mood"}]
    return (
        "".join(dict.fromkeys([*(label(name, "zh") for name in names), *(unit.text for unit in found.words)])) or phrase
    )


def color_of(arguments: Mapping[str, Scalar], names: Sequence[str]) -> str | None:
    """Return the colour that three components make, if it has a name."""
    mixed = tuple(arguments.get(name) for name in names)
    return next((color for color, parts in COLORS.items() if parts == mixed), None)


def named_color(value: str) -> str | None:
    """Return the name of a colour given by name or as `#rrggbb`."""
    return value if value in COLORS else _hexadecimal_colors().get(value.lower())


@cache
def _hexadecimal_colors() -> dict[str, str]:
    return {"#{:02x}{:02x}{:02x}".format(*parts): color for color, parts in COLORS.items()}

"""How tools, arguments and values are called in a spoken sentence."""

import re
from collections.abc import Iterable, Mapping, Sequence

from fleet.workbench.demo_llm.arguments import as_hex, component
from fleet.workbench.demo_llm.reading import MEASURES, Mark, Reading, read, spaced
from fleet.workbench.demo_llm.schemas import Property, Scalar, Tool
from fleet.workbench.demo_llm.words import Language, concept, dictionary, label, say

_LONGEST_DESCRIPTION: dict[Language, int] = {"en": 48, "zh": 14}
_SILENT = frozenset({"self", "device", "tool", "mcp"})
_VAGUE = frozenset({"value", "level", "power", "status", "on", "off", "set"}) | MEASURES
_SAID = {"on": "turn on", "off": "turn off", "up": "turn up", "down": "turn down"}
_SAID |= dict.fromkeys(("get", "ask", "fetch", "query", "read"), "tell")


def say_tool(tool: Tool, language: Language) -> str:
    """Return what a tool does as a verb phrase: `set the volume`, `设置音量`."""
    title = tool.title
    verb = next((mark for mark in title.marks if mark.kind == "action" or {"get", "ask"} & set(mark.names)), None)
    first = re.split(r"[.。,，;；:：\n(（]", tool.description.strip(), maxsplit=1)[0].strip()
    described = 1 < len(first) <= _LONGEST_DESCRIPTION[language] and read(first).language == language
    if described and (verb is None or (title.words and language == "zh")):
        return first[:1].lower() + first[1:]
    return _say_tool_zh(title, verb) if language == "zh" else _say_tool_en(title, verb)


def _say_tool_en(title: Reading, verb: Mark | None) -> str:
    text = title.text.lower()
    if verb is None:
        return " ".join(["use", *(word for word in text.split() if word not in _SILENT)])
    said, before, after = (
        piece.strip() for piece in (text[verb.start : verb.end], text[: verb.start], text[verb.end :])
    )
    told = {name for mark in title.marks if mark.start >= verb.end for name in mark.names}
    carried = [
        mark for mark in title.marks if mark.end <= verb.start and mark.kind == "topic" and not told & {*mark.names}
    ]
    nouns = [*(title.surface(mark).lower() for mark in carried), after] if after else [before.removeprefix("self ")]
    article = "a " if "take" in verb.names else "the "
    return f"{_SAID.get(said, said)} {article}{' '.join(nouns)}" if any(nouns) else _SAID.get(said, said)


def _say_tool_zh(title: Reading, verb: Mark | None) -> str:
    marks = [mark for mark in title.marks if mark.kind in {"topic", "place", "value", "generic"}]
    nouns = [label(mark.names[0], "zh") for mark in marks if mark.names[0] != "speaker"]
    return (label(verb.names[0], "zh") if verb else "使用") + "".join(
        dict.fromkeys([*nouns, *title.words, *title.runs])
    )


def say_subject(tool: Tool, entry: Property | None, given: Mapping[str, Scalar], language: Language) -> str:
    """Return what an argument sets: `the screen brightness`, `客厅灯`."""
    own = [name for name in entry.title.names("topic", "generic") if name not in _VAGUE] if entry else []
    things = [name for name in tool.topics if name not in own][: 1 if own else 2]
    texts = [read(spaced(value)) for value in given.values() if isinstance(value, str)]
    named = {kind: [name for text in texts for name in text.names(kind)][:1] for kind in ("place", "topic")}
    places, chosen = tool.title.names("place") or named["place"], named["topic"] if tool.title.names("generic") else []
    names = dict.fromkeys([*places, *chosen, *things, *own])
    said = (" " if language == "en" else "").join(label(name, language) for name in names)
    said = said or (spaced(entry.name).lower() if entry else "")
    return f"the {said}" if said and language == "en" else said


def say_argument(entry: Property, value: Scalar, language: Language) -> str:
    """Return the value of an argument in words, with the measure that the argument is named after."""
    measure = next((name for name in ("second", "minute", "hour") if entry.title.has(name)), "")
    if measure and isinstance(value, int | float):
        return say(measure, language, f"{value:g}")
    return say_value(value, entry.title.names("topic"), language)


def say_value(value: Scalar, context: Iterable[str], language: Language) -> str:
    """Return a value in words; `context` are the concepts that it belongs to."""
    about, coded = set(context), f"language_{value}"
    if coded in dictionary().concepts:
        return label(coded, language)
    if isinstance(value, int | float):
        number = f"{value:g}" if abs(value) < 1e15 else str(value)
        percent = {"battery", "humidity"} & about and 0 <= value <= 100
        measure = "percent" if percent else "degrees" if "temperature" in about else ""
        return say(measure, language, number) if measure else number
    if language == "en":
        return spaced(value).strip() if value.islower() and "." not in value else value
    found = read(spaced(value))
    names = found.names("value", "color", "place", "action")
    if "theme" in about and value.lower() == "light":
        return label("light_mode", "zh")
    return label(names[0], "zh") if names and len(found.text.split()) < 4 and not found.words else value


def say_keys(keys: Sequence[str], language: Language) -> str:
    """Return the keys of a result as a noun: `battery level`, `电量`."""
    phrase = spaced(" ".join(keys)).lower()
    found = read(phrase)
    names = [label(mark.names[0], "zh") for mark in found.marks if mark.kind not in {"filler", "mood"}]
    return "".join(dict.fromkeys([*names, *found.words])) or phrase if language == "zh" else phrase


def color_of(tool: Tool, given: Mapping[str, Scalar]) -> str | None:
    """Return the name of the colour that the arguments give, by name or in three components."""
    mixed = tuple(given.get(entry.name) for entry in tool.properties if component(entry))
    spelt = [given.get(entry.name) for entry in tool.properties if entry.title.has("color")]
    colors = (one for one in dictionary().concepts.values() if one.kind == "color")
    return next(
        (color.name for color in colors if color.rgb == mixed or {color.name, as_hex(color.name)} & {*spelt}), None
    )


def is_action(name: str) -> bool:
    return concept(name).kind == "action" and name not in {"on", "off"}

"""What is said: confirmations, values, failures, questions back, small talk. Plain sentences, the first one short."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from fleet.core.text.speakable import speakable
from fleet.workbench.demo_llm.arguments import as_hex, component
from fleet.workbench.demo_llm.reading import MEASURES, PAUSES, Mark, Reading, read, spaced
from fleet.workbench.demo_llm.results import GENERAL_KEYS, Leaf, ToolResult
from fleet.workbench.demo_llm.schemas import Choice, Property, Scalar, Tool
from fleet.workbench.demo_llm.words import HAN, Language, concept, dictionary, label, say, split

_MOST_VALUES, _MOST_CHOICES, _MOST_ABILITIES = 6, 6, 8
_LONGEST_SPEECH, _LONGEST_REASON = 600, 160
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_LONGEST_DESCRIPTION: dict[Language, int] = {"en": 48, "zh": 14}
_SWITCHES = frozenset({"on", "power", "state", "enabled", "switch", "on off", "onoff"})
_SWITCHES |= {f"{verb} on" for verb in ("power", "powered", "switch", "switched", "turned")}
"""Keys of a result that say of what is above them whether it is on, also with `is` before them."""
_SWITCHED = {"true": True, "on": True, "false": False, "off": False}
_SILENT = frozenset({"self", "device", "tool", "mcp"})
_VAGUE = frozenset({"value", "level", "power", "status", "on", "off", "set"}) | MEASURES
_SAID = {"on": "turn on", "off": "turn off", "up": "turn up", "down": "turn down"}
_SAID |= dict.fromkeys(("get", "ask", "fetch", "query", "read"), "tell")


def tell_done(tool: Tool, given: Mapping[str, Scalar], language: Language) -> str:
    """Return what is now so after a call that worked."""
    told = _changes(tool, given, language)
    if told:
        return say("changed", language, say("and", language).join(told))
    chosen = [choice for entry in tool.properties for choice in entry.choices if choice.value == given.get(entry.name)]
    acted = [label(name, language) for choice in chosen for name in choice.concepts if _is_action(name)]
    return say("done", language, *acted[:1] or [_say_tool(tool, language)])


def tell_failure(tool: Tool, result: ToolResult, language: Language) -> str:
    """Return that it did not work, or that nobody knows, and why."""
    reason = clean(result.reason)[:_LONGEST_REASON].rstrip(" .。")
    start = say("failed" if result.outcome == "failed" else "unclear", language, _say_tool(tool, language))
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
    subject, key = _say_subject(tool, entry, {}, language), _say_keys([entry.name], language)
    question, about, options = "which_number", subject, ""
    if entry.choices:
        question, about = ("which_value", subject) if _tells_state(entry, entry.choices[0]) else ("which_choice", key)
        context = entry.title.names("topic")
        said = [_say_value(choice.value, context, language) for choice in entry.choices[:_MOST_CHOICES]]
        options = say("choices", language, say("or", language).join(said))
    elif entry.kind == "string":
        question, about = "which_text", key
    elif entry.minimum is not None and entry.maximum is not None:
        options = say("range", language, entry.minimum, entry.maximum)
    return say(question, language, about, options)


def ask_which(tools: Sequence[Tool], language: Language) -> str:
    """Return the question which of several tools is meant."""
    names = dict.fromkeys(_say_tool(tool, language) for tool in tools[:_MOST_CHOICES])
    return say("which_tool", language, say("or", language).join(names))


def ask_goal(tool: Tool, entry: Property, language: Language) -> str:
    """Return that the current value could not be found, so that a relative change needs a number."""
    return say("no_current", language, _say_subject(tool, entry, {}, language))


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
    names = list(dict.fromkeys(_say_tool(tool, language) for tool in tools))
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
    named = label(day, reading.language).capitalize()
    return say("date", reading.language, date, named, "一二三四五六日"[date.weekday()])


def _changes(tool: Tool, given: Mapping[str, Scalar], language: Language) -> list[str]:
    color = _color_of(tool, given)
    if color:
        return [say("set_to", language, _say_subject(tool, None, given, language), label(color, language))]
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
    thing = any(_is_action(name) or concept(name).kind == "topic" for name in choice.concepts - {"language"})
    return entry.title.has("theme") or not (placed or thing)


def _change(tool: Tool, entry: Property, given: Mapping[str, Scalar], language: Language) -> str:
    value, part = given[entry.name], component(entry)
    if isinstance(value, bool) or str(value).lower() in {"on", "off"}:
        return _is_switched(tool, given, value is True or str(value).lower() == "on", language)
    subject = _say_keys([part], language) if part else _say_subject(tool, entry, given, language)
    return say("set_to", language, subject, _say_argument(entry, value, language))


def _is_switched(tool: Tool, given: Mapping[str, Scalar], on: bool, language: Language) -> str:
    subject = _say_subject(tool, None, given, language) or say("it", language)
    return say("switched", language, subject, say("on" if on else "off", language))


def _value_sentence(leaf: Leaf, language: Language) -> str:
    last, above = _say_keys(leaf.path[-1:], language), _say_keys(leaf.path[-2:-1], language)
    key, on = spaced(leaf.path[-1]).lower().removeprefix("is "), _SWITCHED.get(str(leaf.value).lower())
    if key in _SWITCHES and on is not None:
        subject = above or (last if key == "power" else "")
        sentences = ("is_on", "is_off") if subject else ("it_is_on", "it_is_off")
        return say(sentences[0 if on else 1], language, subject)
    if isinstance(leaf.value, bool):
        if leaf.path[-1].lower().endswith(("ing", "ed")):
            return say("is_doing" if leaf.value else "not_doing", language, above or "device", last)
        return say("is_on" if leaf.value else "is_off", language, above if above and language == "zh" else last)
    keys = leaf.path[-2:] if leaf.own.text.lower() in GENERAL_KEYS else leaf.path[-1:]
    value = _say_value(leaf.value, (*leaf.own.names("topic"), *leaf.above.names("topic")), language)
    return say("value", language, _say_keys(keys, language), value)


def _say_tool(tool: Tool, language: Language) -> str:
    """Return what a tool does as a verb phrase: `set the volume`, `设置音量`."""
    title = tool.title
    verb = next((mark for mark in title.marks if mark.kind == "action" or {"get", "ask"} & set(mark.names)), None)
    first = re.split(r"[.。,，;；:：\n(（]", tool.description.strip(), maxsplit=1)[0].strip()
    described = 1 < len(first) <= _LONGEST_DESCRIPTION[language] and read(first).language == language
    if described and verb is None:
        return first[:1].lower() + first[1:]
    return _say_tool_zh(title, verb) if language == "zh" else _say_tool_en(title, verb)


def _say_tool_en(title: Reading, verb: Mark | None) -> str:
    text = title.text.lower()
    if verb is None:
        return " ".join(["use", *(word for word in text.split() if word not in _SILENT)])
    said, before, after = title.surface(verb).lower(), text[: verb.start].strip(), text[verb.end :].strip()
    told = {name for mark in title.marks if mark.start >= verb.end for name in mark.names}
    topics = (mark for mark in title.marks if mark.end <= verb.start and mark.kind == "topic")
    carried = [title.surface(mark).lower() for mark in topics if not told & {*mark.names}]
    nouns = " ".join([*carried, after] if after else [before.removeprefix("self ")])
    article = "a" if "take" in verb.names else "the"
    return f"{_SAID.get(said, said)} {article} {nouns}" if nouns else _SAID.get(said, said)


def _say_tool_zh(title: Reading, verb: Mark | None) -> str:
    marks = [mark for mark in title.marks if mark.kind in {"topic", "place", "value", "generic"}]
    nouns = [label(mark.names[0], "zh") for mark in marks if mark.names[0] != "speaker"]
    said = label(verb.names[0], "zh") if verb else "使用"
    return said + "".join(dict.fromkeys([*nouns, *title.words, *title.runs]))


def _say_subject(tool: Tool, entry: Property | None, given: Mapping[str, Scalar], language: Language) -> str:
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


def _say_argument(entry: Property, value: Scalar, language: Language) -> str:
    """Return the value of an argument in words, with the measure that the argument is named after."""
    measure = next((name for name in ("second", "minute", "hour") if entry.title.has(name)), "")
    if measure and isinstance(value, int | float):
        return say(measure, language, f"{value:g}")
    return _say_value(value, entry.title.names("topic"), language)


def _say_value(value: Scalar, context: Iterable[str], language: Language) -> str:
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


def _say_keys(keys: Sequence[str], language: Language) -> str:
    """Return the keys of a result as a noun: `battery level`, `电量`."""
    phrase = spaced(" ".join(keys)).lower()
    found = read(phrase)
    names = [label(mark.names[0], "zh") for mark in found.marks if mark.kind not in {"filler", "mood"}]
    return "".join(dict.fromkeys([*names, *found.words])) or phrase if language == "zh" else phrase


def _color_of(tool: Tool, given: Mapping[str, Scalar]) -> str | None:
    """Return the name of the colour that the arguments give, by name or in three components."""
    mixed = tuple(given.get(entry.name) for entry in tool.properties if component(entry))
    spelt = [given.get(entry.name) for entry in tool.properties if entry.title.has("color")]
    colors = ((one.name, one.rgb) for one in dictionary().concepts.values() if one.kind == "color")
    return next((name for name, rgb in colors if rgb == mixed or {name, as_hex(name)} & {*spelt}), None)


def _is_action(name: str) -> bool:
    return concept(name).kind == "action" and name not in {"on", "off"}

"""Which offered tool an utterance means. A wrong call is worse than a question back, so doubt finds nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleet.workbench.demo_llm.lexicon import Mark, concept
from fleet.workbench.demo_llm.numeric import adjustable, glossed
from fleet.workbench.demo_llm.reading import CHANGES, MEASURES, Reading, sounds_of, stem
from fleet.workbench.demo_llm.schemas import IN_CHOICE, Property, Tool

THRESHOLD = 0.6
"""Score that a tool must reach."""
LEAST_SAID = 0.6
"""Share of what was said that must be explained, however well the tool's own name was said."""
MARGIN = 0.07
"""By how much the best tool must lead, or the user is asked."""

_WEIGHTS = {"topic": 2.0, "generic": 0.5, "place": 1.0, "value": 1.0, "color": 1.0}
_UNKNOWN, _ACTION = 1.5, 0.5
_SHARE_SAID, _SHARE_NAMED = 0.75, 0.25
_OPPOSITES = (
    {"on", "off"},
    {"start", "stop"},
    {"increase", "decrease"},
    {"lock", "unlock"},
    {"next", "previous"},
    {"play", "stop"},
    {"play", "pause"},
    {"pause", "resume"},
    {"start", "cancel"},
    {"set", "cancel"},
)
_KIN = {
    "on": {"start", "resume"},
    "off": {"stop", "pause", "cancel"},
    "start": {"on", "play"},
    "stop": {"off", "pause", "cancel"},
    "play": {"start"},
    "pause": {"stop"},
    "resume": {"play"},
    "cancel": {"stop", "off"},
    "take": {"on"},
    "clean": {"start"},
    "lock": {"off"},
    "unlock": {"on"},
    "move": {"turn"},
    "turn": {"move"},
}
_TELLING_ACTIONS = frozenset(
    {
        "next",
        "previous",
        "pause",
        "resume",
        "reboot",
        "dance",
        "jump",
        "wave",
        "move",
        "turn",
        "brew",
        "clean",
        "toggle",
    }
)
_NEVER = 2.0
_DEVICE_TOPICS = frozenset({"volume", "brightness", "theme", "battery", "charging", "network", "signal", "screen"})


@dataclass(frozen=True, slots=True)
class Match:
    """A tool that may be meant; `score` is 0…1."""

    tool: Tool
    score: float


@dataclass(frozen=True, slots=True)
class _Item:
    """A part of what was said. Of alternatives one key is enough; of a Chinese run the share of its pairs counts."""

    keys: frozenset[str]
    weight: float
    surface: str
    kind: str

    @property
    def telling(self) -> float:
        """The strength from which it is enough to choose a tool by."""
        if self.kind == "action":
            return IN_CHOICE if self.keys & _TELLING_ACTIONS else _NEVER
        return {"topic": 0.5, "word": 0.5, "run": 0.5, "value": IN_CHOICE, "color": IN_CHOICE}.get(self.kind, _NEVER)


def find_tools(reading: Reading, tools: Sequence[Tool]) -> tuple[Match, ...]:
    """Return the tools that are meant, the best first; more than one is an ambiguity, none means not understood."""
    matches = sorted(
        (Match(tool, _score(reading, tool)) for tool in tools if _may_do(reading, tool)), key=lambda match: -match.score
    )
    best = [match for match in matches if match.score >= THRESHOLD]
    return tuple(match for match in best if match.score > best[0].score - MARGIN)


def find_source(setter: Tool, tools: Sequence[Tool], topics: Sequence[str]) -> Tool | None:
    """Return the tool that tells, without needing an argument, the current value of what `setter` sets."""
    askable = [tool for tool in tools if tool.reads and not tool.required]
    scored = [(_knows(tool, topics) or _tells_state_of(tool, setter), tool) for tool in askable]
    best = max(scored, key=lambda entry: entry[0], default=(0.0, None))
    return best[1] if best[0] > 0 else None


def _knows(tool: Tool, topics: Iterable[str]) -> float:
    about = sum(tool.strengths.get(topic, 0) for topic in topics)
    return about or (0.4 if _general_status(tool) and _DEVICE_TOPICS & set(topics) else 0)


def _tells_state_of(tool: Tool, setter: Tool) -> float:
    shared = set(tool.topics) & set(setter.topics) and tool.title.has("status")
    return 0.5 if shared else 0.0


def _general_status(tool: Tool) -> bool:
    return tool.reads and tool.title.has("status") and not tool.topics


def _score(reading: Reading, tool: Tool) -> float:
    items = _items(reading)
    strengths = [_strength(tool, item) for item in items]
    values_count = "set" in reading.names("action") or not (reading.words or reading.runs)
    telling = any(
        strength >= item.telling and (values_count or item.kind not in {"value", "color"})
        for item, strength in zip(items, strengths, strict=True)
    )
    if not (telling or _asks_status(reading, tool)):
        return 0.0
    explained = [max(found, _lenient(tool, item, reading)) for item, found in zip(items, strengths, strict=True)]
    whole = sum(item.weight for item in items)
    said = sum(item.weight * share for item, share in zip(items, explained, strict=True)) / whole
    return 0.0 if said < LEAST_SAID else _SHARE_SAID * said + _SHARE_NAMED * _named(reading, tool)


def _asks_status(reading: Reading, tool: Tool) -> bool:
    about = reading.has("status") or (_DEVICE_TOPICS & set(reading.names("topic")))
    return bool(about) and _general_status(tool)


def _items(reading: Reading) -> list[_Item]:
    items = [item for mark in reading.marks if (item := _marked(reading, mark)) is not None]
    items += [_Item(frozenset({name}), _ACTION, name, "action") for name in reading.actions if name != "set"]
    items += [_Item(frozenset({stem(unit.text)}), _UNKNOWN, unit.text, "word") for unit in reading.words]
    items += [_Item(sounds_of(run), _UNKNOWN, run, "run") for run in reading.runs]
    return list({item.keys: item for item in reversed(items)}.values())


def _marked(reading: Reading, mark: Mark) -> _Item | None:
    kinds = [concept(name).kind for name in mark.names]
    kind = max(kinds, key=lambda kind: _WEIGHTS.get(kind, 0.0))
    weight = _WEIGHTS.get(kind, 0.0)
    if not weight or MEASURES & set(mark.names) or {"max", "min"} & set(mark.names):
        return None
    return _Item(frozenset(mark.names), weight * mark.quality, reading.surface(mark).lower(), kind)


def _strength(tool: Tool, item: _Item) -> float:
    """Return how surely the tool itself speaks of this."""
    found = [tool.strengths.get(key, 0.0) for key in item.keys]
    return sum(found) / len(found) if item.kind == "run" else max(found)


def _lenient(tool: Tool, item: _Item, reading: Reading) -> float:
    """Return how well a part fits that would not by itself choose the tool."""
    if item.kind == "generic" and tool.reads:
        return 1.0
    if item.kind == "action":
        return 0.9
    if _general_status(tool) and item.keys & _DEVICE_TOPICS:
        return 0.8
    if item.kind == "topic" and tool.title.has("status") and set(tool.topics) & set(reading.names("topic")):
        return 0.7
    if any(item.surface == " ".join(choice.words) for entry in tool.properties for choice in entry.choices):
        return 0.9
    wanted = any(entry.kind == "string" and not entry.choices for entry in tool.required)
    return 0.7 if wanted and item.kind in {"word", "run", "place", "value"} else 0.0


def _named(reading: Reading, tool: Tool) -> float:
    """Return the share of the tool's own name that was said."""
    silent = {"generic", "filler", "mood"}
    own = [set(mark.names) for mark in tool.title.marks if concept(mark.names[0]).kind not in silent]
    own += [{stem(unit.text)} for unit in tool.title.words]
    said = {name for mark in reading.marks for name in mark.names} | {stem(unit.text) for unit in reading.words}
    said |= {kin for action in reading.actions for kin in _KIN.get(action, set())}
    said.add("set")
    share = sum(bool(names & said) for names in own) / len(own) if own else 0.5
    return max(share, 0.0 if tool.title.marks else 0.5)


def _may_do(reading: Reading, tool: Tool) -> bool:
    if _elsewhere(reading, tool):
        return False
    if reading.mood == "query" or _bare(reading):
        return tool.reads
    if tool.reads or reading.has("negation"):
        return False
    return not _contradicts(reading, tool) and _takes_value(reading, tool) and _acts(reading, tool)


def _bare(reading: Reading) -> bool:
    """Tell `battery` (a question) from `volume 30`."""
    said = reading.actions or reading.numbers or reading.names("value", "color")
    return not (said or reading.words or reading.runs)


def _elsewhere(reading: Reading, tool: Tool) -> bool:
    place, own = set(reading.names("place")), set(tool.title.names("place"))
    return bool(place and own and not place & own)


def _contradicts(reading: Reading, tool: Tool) -> bool:
    asked, verbs = set(reading.actions), set(tool.verbs)
    if asked & verbs:
        return False
    return any(asked & pair and verbs & pair for pair in _OPPOSITES)


def _takes_value(reading: Reading, tool: Tool) -> bool:
    return not reading.numbers or any(_holds_numbers(entry) for entry in tool.properties)


def _holds_numbers(entry: Property) -> bool:
    if entry.choices:
        return any(isinstance(choice.value, int | float) or choice.words[0].isdigit() for choice in entry.choices)
    return entry.kind in {"number", "string", "other"}


def _acts(reading: Reading, tool: Tool) -> bool:
    asked = reading.actions
    if not asked or asked == ("set",):
        return _sets(reading, tool)
    return all(_performs(action, reading, tool) for action in asked if action != "set")


def _sets(reading: Reading, tool: Tool) -> bool:
    valued = reading.numbers or reading.names("value", "color")
    if not (valued or reading.actions) and tool.verbs:
        return False
    if tool.properties:
        return not CHANGES & set(tool.verbs)
    known = set(tool.strengths) >= set(reading.names("value", "color"))
    return (
        known
        and not set(tool.verbs) & {"on", "off", *CHANGES}
        and all(_strength(tool, item) > 0 for item in _items(reading) if item.kind != "place")
    )


def _performs(action: str, reading: Reading, tool: Tool) -> bool:
    if action in tool.verbs or _KIN.get(action, set()) & set(tool.verbs):
        return True
    offered = {name for entry in tool.properties for choice in entry.choices for name in choice.concepts}
    if action in offered:
        return True
    if action in CHANGES:
        return adjustable(reading, tool) is not None
    if action in {"on", "off"}:
        valued = offered & set(reading.names("value", "color"))
        return bool(valued) or any(
            entry.kind == "boolean" or glossed(tool, entry, action) is not None for entry in tool.properties
        )
    return not tool.verbs and tool.strengths.get(action, 0) > 0

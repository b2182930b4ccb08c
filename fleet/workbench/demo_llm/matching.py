"""Which offered tool an utterance means. A wrong call is worse than a question back, so doubt finds nothing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleet.workbench.demo_llm.reading import CHANGES, MEASURES, Reading, keys_of, read, sounds, stem
from fleet.workbench.demo_llm.schemas import IN_CHOICE, Property, Tool
from fleet.workbench.demo_llm.words import concept

THRESHOLD = 0.6
"""Score that a tool must reach, and share of what was said that must be explained."""
MARGIN = 0.07
"""By how much the best tool must lead, or the user is asked."""

_WEIGHTS = {"topic": 2.0, "unknown": 1.5, "place": 1.0, "value": 1.0, "color": 1.0, "generic": 0.5, "action": 0.5}
_SHARE_SAID, _SHARE_NAMED = 0.75, 0.25
# From which strength a part is enough to choose a tool by
_TELLING = {"topic": 0.5, "unknown": 0.5, "value": IN_CHOICE, "color": IN_CHOICE}
_DEVICE = frozenset({"volume", "brightness", "theme", "battery", "charging", "network", "signal", "screen"})
"""What a device's status tells of, whether its description says so or not."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of what was said. Of alternatives one key is enough; of unknown Chinese the share of its pairs counts."""

    keys: frozenset[str]
    text: str
    kind: str

    def strength(self, tool: Tool) -> float:
        """Return how surely the tool itself speaks of this."""
        found = [tool.strengths.get(key, 0.0) for key in self.keys]
        return sum(found) / len(found) if self.kind == "unknown" else max(found)

    def tells(self, tool: Tool) -> bool:
        clear = self.kind == "action" and any(concept(name).clear for name in self.keys)
        return self.strength(tool) >= (IN_CHOICE if clear else _TELLING.get(self.kind, 2.0))

    def lenient(self, tool: Tool, reading: Reading) -> float:
        """Return how well a part fits that would not by itself choose the tool."""
        if self.kind == "action" or (self.kind == "generic" and tool.read_only):
            return 0.9
        if tool.tells_everything and self.keys & _DEVICE:
            return 0.8
        if self.kind == "topic" and tool.title.has("status") and tool.title.has(*reading.names("topic")):
            return 0.7
        if any(self.text == str(choice.value).lower() for entry in tool.properties for choice in entry.choices):
            return 0.9
        free = [entry for entry in tool.properties if entry.kind == "string" and not entry.choices]
        wanted = any(entry.required or entry.title.has("timezone") for entry in free)
        return 0.7 if wanted and self.kind in {"unknown", "place", "value"} else 0.0


def find_tools(reading: Reading, tools: Sequence[Tool]) -> list[Tool]:
    """Return the tools that are meant, the best first; more than one is an ambiguity, none means not understood."""
    scored = [(_score(reading, tool), tool) for tool in tools if _may_do(reading, tool)]
    scored = sorted((one for one in scored if one[0] >= THRESHOLD), key=lambda one: -one[0])
    return [tool for score, tool in scored if score > scored[0][0] - MARGIN]


def find_source(setter: Tool, tools: Sequence[Tool], topics: Sequence[str]) -> Tool | None:
    """Return the tool that tells, without needing an argument, the current value of what `setter` sets."""

    def knows(tool: Tool) -> float:
        about = sum(tool.strengths.get(topic, 0) for topic in topics if topic != "screen")
        general = 0.4 if tool.tells_everything and _DEVICE & set(topics) else 0.0
        return about or general or (0.3 if tool.title.has("status") and tool.title.has(*setter.topics) else 0.0)

    sources = (tool for tool in tools if tool.read_only and not tool.required and knows(tool))
    return max(sources, key=knows, default=None)


def adjustable(reading: Reading, tool: Tool) -> Property | None:
    """Return the numeric argument that `more` and `less` move: the one that was named, or the only one."""
    numeric = [entry for entry in tool.properties if entry.kind == "number"]
    named = [entry for entry in numeric if reading.has(*(name for name in entry.concepts if name != "level"))]
    only = numeric if len(numeric) == 1 and tool.title.has(*reading.names("topic")) else []
    return next(iter(named or only), None)


def glossed(tool: Tool, entry: Property, actions: Sequence[str]) -> list[float]:
    """Return the number that stands for an action in the descriptions: `0 is closed, 100 is open`."""
    texts = (entry.description.text, tool.description) if entry.kind == "number" else ()
    found = (pair for text in texts for pair in re.findall(r"(\d+)(\D+)", text))
    return [float(number) for number, meaning in found if set(actions) & set(read(meaning).actions)][:1]


def _score(reading: Reading, tool: Tool) -> float:
    parts = list(_parts(reading))
    chosen = any(part.tells(tool) for part in parts)
    of_device = reading.has("status", *_DEVICE) and tool.tells_everything
    if not (chosen or of_device):
        return 0.0
    weights = [_WEIGHTS[part.kind] for part in parts]
    fits = [max(part.strength(tool), part.lenient(tool, reading)) for part in parts]
    said = sum(weight * fit for weight, fit in zip(weights, fits, strict=True)) / sum(weights)
    own = [set(mark.names) for mark in tool.title.marks if mark.kind in {"topic", "place", "value", "color", "action"}]
    own += [{stem(word)} for word in tool.title.words]
    known = keys_of(reading) | {"set"}.union(*(concept(action).kin for action in reading.actions))
    named = sum(bool(names & known) for names in own) / len(own) if own else 0.5
    return 0.0 if said < THRESHOLD else _SHARE_SAID * said + _SHARE_NAMED * named


def _parts(reading: Reading) -> Iterator[_Part]:
    for mark in reading.marks:
        kind = max((concept(name).kind for name in mark.names), key=lambda kind: _WEIGHTS.get(kind, 0.0))
        if kind in _WEIGHTS and kind != "action" and not (MEASURES | {"max", "min"}) & set(mark.names):
            yield _Part(frozenset(mark.names), reading.surface(mark).lower(), kind)
    for name in reading.actions:
        if name != "set":
            yield _Part(frozenset({name}), name, "action")
    for word in reading.words:
        yield _Part(frozenset({stem(word)}), word, "unknown")
    for run in reading.runs:
        yield _Part(sounds(run), run, "unknown")


def _may_do(reading: Reading, tool: Tool) -> bool:
    place, own = reading.names("place"), tool.title.names("place")
    if place and own and not set(place) & set(own):
        return False
    # Tell `battery` and `weather in London` (questions) from `volume 30`
    told = reading.actions or reading.numbers or reading.names("value", "color")
    if reading.asks or not (told or ((reading.words or reading.runs) and not tool.required)):
        return tool.read_only
    numeric = any(entry.kind != "boolean" and not entry.choices for entry in tool.properties)
    if tool.read_only or reading.has("negation") or (reading.numbers and not numeric):
        return False
    against = {name for action in reading.actions for name in concept(action).opposite} & set(tool.verbs)
    if against and not set(reading.actions) & set(tool.verbs):
        return False
    asked = [action for action in reading.actions if action != "set"]
    return all(_performs(action, reading, tool) for action in asked) if asked else _sets(reading, tool)


def _sets(reading: Reading, tool: Tool) -> bool:
    if tool.properties:
        return not CHANGES & set(tool.verbs)
    parts = [part for part in _parts(reading) if part.kind != "place"]
    return not {"on", "off", *CHANGES} & set(tool.verbs) and all(part.strength(tool) > 0 for part in parts)


def _performs(action: str, reading: Reading, tool: Tool) -> bool:
    offered = {name for entry in tool.properties for choice in entry.choices for name in choice.concepts}
    if ({action} | concept(action).kin) & set(tool.verbs) or action in offered:
        return True
    if action in CHANGES:
        return adjustable(reading, tool) is not None
    if action in {"on", "off"}:
        switched = any(entry.kind == "boolean" or glossed(tool, entry, [action]) for entry in tool.properties)
        return switched or bool(offered & set(reading.names("value", "color")))
    return False

"""Arguments for a tool call, taken from what was said and kept within the schema."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fleet.workbench.demo_llm.matching import adjustable, glossed
from fleet.workbench.demo_llm.numbers import SECONDS, Number, find_time
from fleet.workbench.demo_llm.reading import CHANGES, Reading
from fleet.workbench.demo_llm.schemas import Choice, Property, Scalar, Tool
from fleet.workbench.demo_llm.words import concept

STEP = 0.1
"""Share of a range by which `more` and `less` move."""
COMPONENTS = ("red", "green", "blue")
_DAYS = frozenset({"today", "tomorrow", "tonight", "yesterday"})

Arguments = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Change:
    """A value to move from wherever it is now; `amount` is signed, in the argument's own measure."""

    entry: Property
    amount: float

    def apply(self, current: float) -> Scalar:
        return self.entry.fit(current + self.amount)


@dataclass(frozen=True, slots=True)
class Filled:
    """The arguments found; `missing` are required ones that were not said."""

    arguments: Arguments
    missing: tuple[Property, ...]
    change: Change | None


def fill(reading: Reading, tool: Tool) -> Filled:
    """Return the arguments that the utterance gives to the tool."""
    change = _change(reading, tool)
    moved = change.entry.name if change else ""
    filling = _Filling(reading, tool, moved)
    open_ = [entry for entry in tool.properties if entry.name != moved]
    values = {entry.name: filling.value(entry) for entry in sorted(open_, key=lambda entry: not entry.required)}
    arguments = {name: value for name, value in values.items() if value is not None}
    missing = tuple(entry for entry in tool.required if entry.name not in {*arguments, moved})
    return Filled(arguments, missing, change)


def as_hex(color: str) -> str:
    return "#{:02x}{:02x}{:02x}".format(*concept(color).rgb)


def component(entry: Property) -> str:
    """Return the colour that a numeric argument is a part of: red, green, blue or empty."""
    return next((name for name in COMPONENTS if entry.name.lower() in {name, name[0]}), "")


def _change(reading: Reading, tool: Tool) -> Change | None:
    asked, entry = CHANGES & set(reading.actions), adjustable(reading, tool)
    if not asked or entry is None or CHANGES & set(tool.verbs) or reading.has("max", "min"):
        return None
    amounts = [number for number in reading.numbers if not number.unit]
    if any(number.towards for number in amounts):
        return None
    whole = 100.0 if entry.minimum is None or entry.maximum is None else entry.maximum - entry.minimum
    if amounts:
        step = abs(amounts[-1].value) * (whole if amounts[-1].share else 1)
    else:
        step = max(1.0, float(round(whole * STEP))) if entry.whole else whole * STEP
    return Change(entry, step if "increase" in asked else -step)


class _Filling:
    def __init__(self, reading: Reading, tool: Tool, moved: str) -> None:
        self._reading, self._tool = reading, tool
        self._numbers, self._rest = list(reading.numbers), reading.rest()
        self._several = sum(entry.kind == "number" and entry.name != moved for entry in tool.required) > 1

    def value(self, entry: Property) -> Scalar | None:
        if entry.choices:
            return _choose(self._reading, self._tool, entry)
        if entry.kind == "number":
            return self._number(entry)
        if entry.kind == "boolean":
            actions = set(self._reading.actions)
            return False if actions & {"off", "stop", "unlock"} else True if actions & {"on", "start", "lock"} else None
        return next(self._texts(entry), None) if entry.kind == "string" else None

    def _number(self, entry: Property) -> Scalar | None:
        reading, part, colors = self._reading, component(entry), self._reading.names("color")
        if part and colors:
            return entry.fit(concept(colors[0]).rgb[COMPONENTS.index(part)])
        if reading.has("max", "min"):
            limit = entry.maximum if reading.has("max") else entry.minimum or 0.0
            return None if limit is None else entry.fit(limit)
        number = self._take_number(entry)
        if number is None:
            return next(map(entry.fit, glossed(self._tool, entry, reading.actions)), None)
        return entry.fit(_measured(entry, number))

    def _take_number(self, entry: Property) -> Number | None:
        """An argument that may be left out takes a number only when it was named or is the only one."""
        only = sum(other.kind == "number" for other in self._tool.properties) == 1
        if not self._numbers or not (entry.required or only or self._reading.has(*entry.concepts)):
            return None
        if self._several:
            return self._numbers.pop(0)
        chosen = self._numbers[-1]
        self._numbers.clear()
        return chosen

    def _texts(self, entry: Property) -> Iterator[str]:
        """Yield what may be meant, the likeliest first."""
        reading = self._reading
        days = [reading.surface(mark) for mark in reading.marks if _DAYS & set(mark.names)]
        if entry.title.has("date") and days:
            yield days[0]
        if not (entry.required or entry.title.has("timezone")):
            return
        if entry.title.has("question"):
            yield reading.text
        moment = find_time(reading.text.lower())
        if entry.title.has("time") and moment:
            yield f"{moment[0]:02d}:{moment[1]:02d}"
        if entry.title.has("color"):
            hexadecimal = entry.description.has("hexadecimal")
            yield from (as_hex(color) if hexadecimal else color for color in reading.names("color"))
        places = [reading.surface(mark) for mark in reading.marks if mark.kind == "place"]
        if places and (entry.speaks_of("room", "device", "light") or not self._rest):
            yield places[0]
        rest, self._rest = self._rest, ""
        if rest:
            yield rest.title() if entry.speaks_of("place_name", "timezone") else rest


def _measured(entry: Property, number: Number) -> float:
    """Return a number in the argument's own measure: seconds, or its range for percents and fractions."""
    if number.unit:
        own = next((unit for unit in SECONDS if entry.speaks_of(unit)), number.unit)
        return number.value * SECONDS[number.unit] / SECONDS[own]
    low, high = entry.minimum or 0.0, 100.0 if entry.maximum is None else entry.maximum
    return low + (high - low) * number.value if number.share else number.value


def _choose(reading: Reading, tool: Tool, entry: Property) -> Scalar | None:
    said = {*reading.names("value", "color", "action", "place", "topic")} - {"set"}

    def fits(choice: Choice) -> float:
        own = choice.concepts - set(tool.topics)
        literally = f" {str(choice.value).replace('_', ' ').lower()} " in f" {reading.text.lower()} "
        return 2.0 * len(own & said) / max(1, len(own)) + literally

    best = max(entry.choices, key=fits)
    named = {name for choice in entry.choices for name in choice.concepts}
    # Tell `turn off dark mode` from `turn off the light in the kitchen`
    negated = "off" in reading.actions and named & set(reading.names("value")) and "off" not in named
    if negated and len(entry.choices) == 2 and all(other.kind != "boolean" for other in tool.properties):
        return next(choice.value for choice in entry.choices if choice != best)
    return best.value if fits(best) else None

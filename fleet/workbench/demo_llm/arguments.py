"""Arguments for a tool call, taken from what was said and kept within the schema."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fleet.workbench.demo_llm.concepts import COLORS
from fleet.workbench.demo_llm.numbers import SECONDS, Number
from fleet.workbench.demo_llm.numeric import adjustable, glossed
from fleet.workbench.demo_llm.reading import CHANGES, Reading
from fleet.workbench.demo_llm.schemas import Property, Scalar, Tool
from fleet.workbench.demo_llm.times import find_time

STEP = 0.1
"""Share of a range by which `more` and `less` move."""

Arguments = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Change:
    """A value to move from wherever it is now; `amount` is signed, in the argument's own measure."""

    entry: Property
    amount: float

    def apply(self, current: float) -> Scalar:
        return fit(self.entry, current + self.amount)


@dataclass(frozen=True, slots=True)
class Filled:
    """The arguments found; `missing` are required ones that were not said."""

    arguments: Arguments
    missing: tuple[Property, ...] = ()
    change: Change | None = None


def fill(reading: Reading, tool: Tool) -> Filled:
    """Return the arguments that the utterance gives to the tool."""
    change = _change(reading, tool)
    filling = _Filling(reading, tool, skipped=change.entry.name if change else "")
    arguments: dict[str, Scalar] = {}
    for entry in (*tool.required, *(entry for entry in tool.properties if not entry.required)):
        value = None if entry.name == filling.skipped else filling.value(entry)
        if value is not None:
            arguments[entry.name] = value
    missing = tuple(entry for entry in tool.required if entry.name not in {*arguments, filling.skipped})
    return Filled(arguments, missing, change)


def fit(entry: Property, value: float) -> Scalar:
    """Return the number within the argument's range, whole where it must be."""
    if entry.minimum is not None:
        value = max(value, entry.minimum)
    if entry.maximum is not None:
        value = min(value, entry.maximum)
    return round(value) if entry.whole or value == int(value) else round(value, 3)


def _change(reading: Reading, tool: Tool) -> Change | None:
    asked = CHANGES & set(reading.actions)
    entry = adjustable(reading, tool)
    if not asked or entry is None or CHANGES & set(tool.verbs) or reading.names("value") in {("max",), ("min",)}:
        return None
    amounts = [number for number in reading.numbers if not number.unit]
    if any(number.towards for number in amounts):
        return None
    sign = 1 if "increase" in asked else -1
    return Change(entry, sign * (abs(_scaled_amount(entry, amounts[-1])) if amounts else _step(entry)))


def _step(entry: Property) -> float:
    low, high = entry.minimum, entry.maximum
    step = 10.0 if low is None or high is None else (high - low) * STEP
    return max(1.0, float(round(step))) if entry.whole else step


def _scaled_amount(entry: Property, number: Number) -> float:
    if number.scale == "plain" or entry.minimum is None or entry.maximum is None:
        return number.value
    return (entry.maximum - entry.minimum) * number.value / (100 if number.scale == "percent" else 1)


@dataclass
class _Filling:
    reading: Reading
    tool: Tool
    skipped: str
    numbers: list[Number] = field(default_factory=list)
    text_used: bool = False

    def __post_init__(self) -> None:
        self.numbers = list(self.reading.numbers)

    def value(self, entry: Property) -> Scalar | None:
        if entry.choices:
            return _choose(self.reading, self.tool, entry)
        found: dict[str, Callable[[Property], Scalar | None]] = {
            "number": self._number,
            "boolean": self._boolean,
            "string": self._string,
        }
        return found[entry.kind](entry) if entry.kind in found else None

    def _number(self, entry: Property) -> Scalar | None:
        for name in ("red", "green", "blue"):
            if _is_component(entry, name):
                return self._component(entry, name)
        moment = find_time(self.reading.units)
        if moment is not None and entry.speaks_of("hour", "minute") and not self._durations():
            return moment.hour if entry.reading.has("hour") else moment.minute
        extreme = _extreme(self.reading, entry)
        if extreme is not None:
            return extreme
        number = self._take_number(entry)
        if number is not None:
            return fit(entry, _measured(entry, number))
        return self._glossed(entry)

    def _component(self, entry: Property, name: str) -> Scalar | None:
        colors = self.reading.names("color")
        if not colors:
            number = self._take_number(entry)
            return None if number is None else fit(entry, number.value)
        return fit(entry, COLORS[colors[0]][("red", "green", "blue").index(name)])

    def _take_number(self, entry: Property) -> Number | None:
        if not self.numbers or not (entry.required or self._wanted(entry)):
            return None
        waiting = [other for other in self.tool.required if other.kind == "number" and other.name != self.skipped]
        if len(waiting) > 1:
            return self.numbers.pop(0)
        towards = [number for number in self.numbers if number.towards]
        chosen = (towards or self.numbers)[-1]
        self.numbers.clear()
        return chosen

    def _wanted(self, entry: Property) -> bool:
        """An argument that may be left out takes a number only when it was named or is the only one."""
        numeric = [other for other in self.tool.properties if other.kind == "number"]
        return len(numeric) == 1 or any(self.reading.has(name) for name in entry.concepts)

    def _durations(self) -> bool:
        return any(number.unit for number in self.reading.numbers)

    def _glossed(self, entry: Property) -> Scalar | None:
        meant = (glossed(self.tool, entry, action) for action in self.reading.actions)
        return next((fit(entry, number) for number in meant if number is not None), None)

    def _boolean(self, entry: Property) -> Scalar | None:
        actions = set(self.reading.actions)
        if actions & {"off", "stop", "unlock"}:
            return False
        return True if actions & {"on", "start", "lock"} else None

    def _string(self, entry: Property) -> Scalar | None:
        if not entry.required:
            return None
        for find in (_whole_text, _time_text, _color_text, self._place_text, _date_text, self._free_text):
            text = find(self.reading, entry)
            if text:
                return text
        return None

    def _place_text(self, reading: Reading, entry: Property) -> str | None:
        places = [mark for mark in reading.marks if set(mark.names) & set(reading.names("place"))]
        if not places or not (entry.speaks_of("room", "device", "light") or not (reading.words or reading.runs)):
            return None
        return reading.surface(places[0])

    def _free_text(self, reading: Reading, entry: Property) -> str | None:
        if self.text_used:
            return None
        self.text_used = True
        return reading.rest().title() if _is_name(entry, reading) else reading.rest()


def _is_name(entry: Property, reading: Reading) -> bool:
    return entry.speaks_of("place_name") and reading.language == "en"


def _is_component(entry: Property, name: str) -> bool:
    return entry.reading.has(name) or entry.name.lower() == name[0]


def _extreme(reading: Reading, entry: Property) -> Scalar | None:
    if reading.has("max"):
        return None if entry.maximum is None else fit(entry, entry.maximum)
    if reading.has("min"):
        return fit(entry, 0.0 if entry.minimum is None else entry.minimum)
    return None


def _measured(entry: Property, number: Number) -> float:
    """Return a number in the argument's own measure: seconds, or its range for percents and fractions."""
    if number.unit:
        own = next((unit for unit in SECONDS if entry.speaks_of(unit)), number.unit)
        return number.value * SECONDS[number.unit] / SECONDS[own]
    low, high = entry.minimum or 0.0, entry.maximum
    if number.scale == "plain" or (number.scale == "percent" and (low, high) in {(0.0, 100.0), (0.0, None)}):
        return number.value
    share = number.value / (100 if number.scale == "percent" else 1)
    return low + ((100.0 if high is None else high) - low) * share


def _choose(reading: Reading, tool: Tool, entry: Property) -> Scalar | None:
    said = {name for kind in ("value", "color", "action", "place", "topic") for name in reading.names(kind)}
    said -= {"set"}
    best, score = None, 0.0
    for choice in entry.choices:
        own = choice.concepts - set(tool.topics)
        found = 2.0 * len(own & said) / max(1, len(own)) + _literally(reading, choice.words)
        if found > score:
            best, score = choice.value, found
    numbers = [choice.value for choice in entry.choices if _equals_number(reading, choice.value)]
    if best is None and numbers:
        return numbers[0]
    return _other(entry, best) if best is not None and _negated_choice(reading, tool, entry) else best


def _literally(reading: Reading, words: tuple[str, ...]) -> float:
    said = [unit.text for unit in reading.units]
    return float(any(tuple(said[at : at + len(words)]) == words for at in range(len(said))) and bool(words))


def _equals_number(reading: Reading, value: Scalar) -> bool:
    return any(str(value) in {str(number.value), str(int(number.value))} for number in reading.numbers)


def _negated_choice(reading: Reading, tool: Tool, entry: Property) -> bool:
    """Tell `turn off dark mode` from `turn off the light in the kitchen`."""
    switched = any(other.kind == "boolean" for other in tool.properties)
    named = {name for choice in entry.choices for name in choice.concepts}
    states = named & set(reading.names("value"))
    return "off" in reading.actions and bool(states) and not switched and "off" not in named and len(entry.choices) == 2


def _other(entry: Property, value: Scalar) -> Scalar:
    return next(choice.value for choice in entry.choices if choice.value != value)


def _whole_text(reading: Reading, entry: Property) -> str | None:
    return reading.text if entry.reading.has("question") else None


def _time_text(reading: Reading, entry: Property) -> str | None:
    moment = find_time(reading.units) if entry.reading.has("time") else None
    return f"{moment:%H:%M}" if moment else None


def _color_text(reading: Reading, entry: Property) -> str | None:
    colors = reading.names("color")
    if not colors or not entry.reading.has("color"):
        return None
    hexadecimal = "#" in entry.description.text or "hex" in entry.description.text.lower()
    return "#{:02x}{:02x}{:02x}".format(*COLORS[colors[0]]) if hexadecimal else colors[0]


def _date_text(reading: Reading, entry: Property) -> str | None:
    days = [mark for mark in reading.marks if {"today", "tomorrow", "tonight", "yesterday"} & set(mark.names)]
    return reading.surface(days[0]) if days and entry.reading.has("date") else None

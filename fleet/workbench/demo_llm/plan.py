"""From an utterance to steps: which calls, in which order, or which question to ask back."""

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.workbench.demo_llm.arguments import Arguments, Change, Filled, fill
from fleet.workbench.demo_llm.lexicon import concept
from fleet.workbench.demo_llm.reading import Reading, read
from fleet.workbench.demo_llm.schemas import Property, Scalar, Tool
from fleet.workbench.demo_llm.tools_match import find_source, find_tools
from fleet.workbench.demo_llm.units import PAUSES

_JOINTS = frozenset({"and", "then", "also", "并", "再", "和"})
_LONGEST_ADDRESS = 4
_MOST_CLAUSES = 6


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. With a `change`, `source` is called first and tells the value that the change starts from."""

    reading: Reading
    tool: Tool
    arguments: Arguments
    change: Change | None = None
    source: Tool | None = None


@dataclass(frozen=True, slots=True)
class Which:
    """Several tools fit equally well."""

    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """The tool is clear, an argument is not."""

    tool: Tool
    entry: Property


Plan = tuple[Step, ...] | Which | Missing | None


def make_plan(text: str, tools: Sequence[Tool]) -> Plan:
    """Return the steps for one utterance; the whole sentence counts unless every clause makes sense by itself."""
    text = _without_address(read(text))
    clauses = _clauses(read(text))
    if 1 < len(clauses) <= _MOST_CLAUSES:
        steps = _by_clause(clauses, tools)
        if steps:
            return steps
    resolved = resolve(read(text), tools)
    return (resolved,) if isinstance(resolved, Step) else resolved


def resolve(reading: Reading, tools: Sequence[Tool]) -> Step | Which | Missing | None:
    """Return what one clause means."""
    matches = find_tools(reading, tools)
    if not matches:
        return None
    filled = [(match.tool, fill(reading, match.tool)) for match in matches]
    complete = [(tool, found) for tool, found in filled if not found.missing]
    if len(complete or filled) > 1:
        return Which(tuple(tool for tool, _ in complete or filled))
    tool, found = (complete or filled)[0]
    return _step(reading, tool, found, tools)


def force(text: str, tool: Tool) -> Step:
    """Return a call of this tool whatever was said; what is missing takes the schema's first allowed value."""
    found = fill(read(text), tool)
    unsaid = (*found.missing, found.change.entry) if found.change else found.missing
    invented = {entry.name: _least(entry, text) for entry in unsaid}
    return Step(read(text), tool, {**found.arguments, **invented})


def _step(reading: Reading, tool: Tool, found: Filled, tools: Sequence[Tool]) -> Step | Missing:
    if found.missing:
        return Missing(tool, found.missing[0])
    if found.change is None:
        return Step(reading, tool, found.arguments)
    if found.change.entry.reading.has("change"):
        return Step(reading, tool, {**found.arguments, found.change.entry.name: found.change.apply(0)})
    source = find_source(tool, tools, topics_of(tool, found.change.entry))
    if source is None:
        return Missing(tool, found.change.entry)
    return Step(reading, tool, found.arguments, found.change, source)


def topics_of(tool: Tool, entry: Property) -> tuple[str, ...]:
    """Return the concepts under which the argument's current value would be told."""
    return entry.reading.names("topic") or tool.topics


def _by_clause(clauses: Sequence[Reading], tools: Sequence[Tool]) -> tuple[Step, ...]:
    steps: list[Step] = []
    before: Reading | None = None
    for clause in clauses:
        reading = clause.with_actions_of(before) if before else clause
        step = resolve(reading, tools)
        if not isinstance(step, Step):
            return ()
        steps.append(step)
        before = reading
    return () if _repeats(steps) else tuple(steps)


def _repeats(steps: Sequence[Step]) -> bool:
    """Tell `take a photo and tell me what you see` (one call) from two lamps at once."""
    commands = [step for step in steps if not step.tool.reads]
    different = {(step.tool.name, _fixed_arguments(step)) for step in commands}
    return len(different) < len(commands)


def _fixed_arguments(step: Step) -> frozenset[tuple[str, Scalar]]:
    return frozenset((name, value) for name, value in step.arguments.items() if _fixed(step.tool, name))


def _fixed(tool: Tool, name: str) -> bool:
    return any(entry.name == name and (entry.kind != "string" or entry.choices) for entry in tool.properties)


def _clauses(reading: Reading) -> tuple[Reading, ...]:
    """Cut at pauses and at `and`, but not inside a known phrase."""
    inside = {at for mark in reading.marks for at in range(mark.start, mark.end)}
    inside |= {at for number in reading.numbers for at in range(number.start, number.end)}
    pieces: list[str] = []
    start = 0
    for at, unit in enumerate(reading.units):
        if at not in inside and (unit.text in PAUSES or unit.text in _JOINTS):
            pieces.append(reading.text[start : unit.start])
            start = unit.end
        elif _begins_next(reading, at):
            pieces.append(reading.text[start : unit.start])
            start = unit.start
    pieces.append(reading.text[start:])
    return tuple(read(piece) for piece in pieces if _says_something(read(piece)))


def _begins_next(reading: Reading, at: int) -> bool:
    """Find the joint that nobody says in `音量30亮度50`."""
    topics = [mark.start for mark in reading.marks if concept(mark.names[0]).kind == "topic"]
    after_number = any(number.end == at for number in reading.numbers)
    return after_number and at in topics and min(topics) < at


def _without_address(reading: Reading) -> str:
    """Drop a name that the utterance begins with: `小智，音量调到20`."""
    pause = next((at for at, unit in enumerate(reading.units) if unit.text in PAUSES), 0)
    named = any(mark.start < pause for mark in reading.marks) or any(number.start < pause for number in reading.numbers)
    if not 0 < pause <= _LONGEST_ADDRESS or named or pause + 1 >= len(reading.units):
        return reading.text
    return reading.text[reading.units[pause].end :].strip()


def _says_something(clause: Reading) -> bool:
    polite = all(mark.names[0] in {"polite", "filler"} for mark in clause.marks)
    return bool(clause.words or clause.runs or clause.numbers) or not polite


def _least(entry: Property, text: str) -> str | int | float | bool:
    if entry.choices:
        return entry.choices[0].value
    if entry.kind == "number":
        return int(entry.minimum or 0) if entry.whole else (entry.minimum or 0.0)
    return False if entry.kind == "boolean" else text

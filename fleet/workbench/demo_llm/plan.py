"""From an utterance to steps: which calls, in which order, or which question to ask back."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fleet.workbench.demo_llm.answers import ask_value, ask_which
from fleet.workbench.demo_llm.arguments import Arguments, Change, fill
from fleet.workbench.demo_llm.matching import find_source, find_tools
from fleet.workbench.demo_llm.reading import CHANGES, PAUSES, Reading, read
from fleet.workbench.demo_llm.schemas import Property, Scalar, Tool
from fleet.workbench.demo_llm.words import HAN, label

_LONGEST_ADDRESS, _LONGEST_FOLLOW_UP = 4, 6
_MOST_CLAUSES, _MOST_TOPICS = 6, 2
_PAUSE = re.escape(PAUSES)
_JOINT = re.compile(rf"[{_PAUSE}并再和]|\b(?:and|then|also)\b", re.IGNORECASE)
_ADDRESS = re.compile(rf"([^{_PAUSE}]+)[{_PAUSE}] *(?=\S)")
_UNIT = re.compile(rf"[{HAN}]|[^\W\d{HAN}]+|\d+")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. With a `change`, `source` is called first and tells the value that the change starts from."""

    reading: Reading
    tool: Tool
    arguments: Arguments
    change: Change | None = None
    source: Tool | None = None


Plan = tuple[Step, ...] | str | None
"""The steps, or a question to ask back, or nothing understood."""


def topics_of(tool: Tool, entry: Property) -> tuple[str, ...]:
    """Return the concepts under which an argument's current value would be told."""
    return entry.title.names("topic") or tool.topics


def make_plan(text: str, tools: Sequence[Tool], earlier: Sequence[str], last_answer: str) -> Plan:
    """Return the plan for what was said, understood by itself or else in the light of what was said before."""
    question: Plan = None
    for said in (text, *_in_context(read(text), earlier, last_answer)):
        plan = _plan_one(said, tools)
        if isinstance(plan, tuple):
            return plan
        question = question or plan
    return question


def _plan_one(text: str, tools: Sequence[Tool]) -> Plan:
    """Return the steps of one text; the whole counts unless every clause makes sense by itself."""
    reading = _without_address(read(text))
    clauses = _clauses(reading)
    steps = _by_clause(clauses, tools) if 1 < len(clauses) <= _MOST_CLAUSES else ()
    resolved = steps or _resolve(reading, tools)
    return (resolved,) if isinstance(resolved, Step) else resolved


def _resolve(reading: Reading, tools: Sequence[Tool]) -> Step | str | None:
    """Return what one clause means."""
    filled = [(tool, fill(reading, tool)) for tool in find_tools(reading, tools)]
    filled = [(tool, found) for tool, found in filled if not found.missing] or filled
    if not filled:
        return None
    tool, found = filled[0]
    if len(filled) > 1 and not tool.reads:
        return ask_which([tool for tool, _ in filled], reading.language)
    missing, change, source = found.missing[:1], found.change, None
    if change and change.entry.title.has("change"):
        return Step(reading, tool, {**found.arguments, change.entry.name: change.apply(0)})
    if change:
        source = find_source(tool, tools, topics_of(tool, change.entry))
        missing = missing if source else (change.entry,)
    if missing:
        return ask_value(tool, missing[0], reading.language)
    return Step(reading, tool, found.arguments, change, source)


def _by_clause(clauses: Sequence[Reading], tools: Sequence[Tool]) -> tuple[Step, ...]:
    steps: list[Step] = []
    for clause in clauses:
        step = _resolve(clause.with_actions_of(steps[-1].reading) if steps else clause, tools)
        if not isinstance(step, Step):
            return ()
        steps.append(step)
    # `take a photo and tell me what you see` is one call, two lamps at once are two
    commands = [_essence(step) for step in steps if not step.tool.reads]
    return tuple(steps) if len(set(commands)) == len(commands) else ()


def _essence(step: Step) -> tuple[str, frozenset[tuple[str, Scalar]]]:
    free = {entry.name for entry in step.tool.properties if entry.kind == "string" and not entry.choices}
    return step.tool.name, frozenset(item for item in step.arguments.items() if item[0] not in free)


def _clauses(reading: Reading) -> list[Reading]:
    """Cut at pauses and at `and`, but not inside a known phrase; and before the second thing in `音量30亮度50`."""
    text, start, pieces = reading.text, 0, []
    inside = [(mark.start, mark.end) for mark in reading.marks] + [(one.start, one.end) for one in reading.numbers]
    joints = [found.span() for found in _JOINT.finditer(text)]
    cuts = [(low, high) for low, high in joints if not any(a <= low < b for a, b in inside)]
    topics = [mark.start for mark in reading.marks if mark.kind == "topic"]
    ends = {number.end for number in reading.numbers}
    cuts += [(at, at) for at in topics[1:] if len(text[:at].rstrip()) in ends]
    for low, high in (*sorted(cuts), (len(text), len(text))):
        pieces.append(read(text[start:low]))
        start = high
    return [one for one in pieces if one.words or one.runs or one.numbers or not _is_polite(one)]


def _is_polite(clause: Reading) -> bool:
    return all(mark.names[0] in {"polite", "filler"} for mark in clause.marks)


def _without_address(reading: Reading) -> Reading:
    """Drop a name that the utterance begins with: `小智，音量调到20`."""
    found = _ADDRESS.match(reading.text)
    starts = [mark.start for mark in reading.marks] + [number.start for number in reading.numbers]
    if not found or len(_UNIT.findall(found[1])) > _LONGEST_ADDRESS or min(starts, default=0) < len(found[1]):
        return reading
    return read(reading.text[found.end() :])


def _in_context(reading: Reading, earlier: Sequence[str], last_answer: str) -> list[str]:
    """Return the utterance with what it leaves out: `40`, `even louder`, `再大一点`."""
    unknown, chinese = bool(reading.words or reading.runs), reading.language == "zh"
    valued = reading.numbers or CHANGES & set(reading.actions) or reading.names("value", "color") or unknown
    if not valued or reading.names("topic") or len(_UNIT.findall(reading.text)) > _LONGEST_FOLLOW_UP:
        return []
    found = []
    if earlier and re.search("[?？]", last_answer) and "要我做什么" not in last_answer:
        found.append(f"{earlier[-1].rstrip(' .。!！?？')}{'到' if chinese else ' to '}{reading.text}")
    topics = read(earlier[-1]).names("topic") if earlier else ()
    if not unknown and 0 < len(topics) <= _MOST_TOPICS:
        found.append(f"{' '.join(label(name, 'en') for name in topics)} {reading.text}")
    only = {name for mark in reading.marks for name in mark.names} - {"polite", "filler", "set"}
    if only in ({"increase"}, {"decrease"}) and not unknown:
        # Without any noun, `turn it up` and `大一点` mean the sound
        found.append(f"{'音量' if chinese else 'volume'} {reading.text}")
    return found

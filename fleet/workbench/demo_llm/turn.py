"""One turn of the demo model: a pure function from the conversation and the offered tools to its next message."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from fleet.workbench.demo_llm import answers, reminders
from fleet.workbench.demo_llm.arguments import Arguments, Change, fill
from fleet.workbench.demo_llm.matching import find_source, find_tools
from fleet.workbench.demo_llm.reading import CHANGES, PAUSES, Reading, read
from fleet.workbench.demo_llm.results import ToolResult
from fleet.workbench.demo_llm.schemas import Property, Scalar, Tool, understand
from fleet.workbench.demo_llm.words import HAN, label, say

_LONGEST_ADDRESS, _LONGEST_FOLLOW_UP = 4, 6
_MOST_CLAUSES, _MOST_TOPICS = 6, 2
_PAUSE = re.escape(PAUSES)
_JOINT = re.compile(rf"[{_PAUSE}并再和]|\b(?:and|then|also)\b", re.IGNORECASE)
_ADDRESS = re.compile(rf"([^{_PAUSE}]+)[{_PAUSE}] *(?=\S)")
_UNIT = re.compile(rf"[{HAN}]|[^\W\d{HAN}]+|\d+")


Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the model asks for."""

    name: str
    arguments: Arguments

    @property
    def written(self) -> str:
        """The arguments as JSON."""
        return json.dumps(dict(self.arguments), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What has been said: the last user message, those before it, the answer just before it.

    `done` are the calls of this turn with what their tools answered, `may_call` allows further ones.
    """

    utterance: str
    earlier: tuple[str, ...] = ()
    last_answer: str = ""
    done: tuple[tuple[Call, ToolResult], ...] = ()
    may_call: bool = True

    def result(self, name: str, arguments: Arguments) -> ToolResult | None:
        """Return what a call has answered; None when it was not made."""
        return next((told for call, told in self.done if (call.name, call.arguments) == (name, arguments)), None)


@dataclass(frozen=True, slots=True)
class Reply:
    """The model's next message: either a text or calls."""

    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """One thing to do. With a `change`, `source` is called first and tells the value that the change starts from."""

    reading: Reading
    tool: Tool
    arguments: Arguments
    change: Change | None = None
    source: Tool | None = None


_Plan = tuple[_Step, ...] | str | None
"""The steps, or a question to ask back, or nothing understood."""


def reply(said: Conversation, tools: Sequence[Tool], clock: Clock) -> Reply:
    """Return the next message."""
    reading = read(said.utterance)
    # The demo model has a clock of its own, and most tools that speak of days or times are no clocks
    told = None if said.done else answers.tell_clock(reading, clock())
    if told:
        return Reply(told)
    if reminded := _remind(said, tools):
        return reminded
    plan = _make_plan(said.utterance, tools, said.earlier, said.last_answer)
    steps = plan if isinstance(plan, tuple) else ()
    calls = {call.name + call.written: call for step in steps if (call := _next_call(step, said))}
    if calls and said.may_call:
        return Reply(calls=tuple(calls.values()))
    if said.done:
        return Reply(_answer(steps, said, reading))
    if isinstance(plan, str):
        return Reply(plan)
    return Reply(answers.make_small_talk(reading, tools) or say("not_understood", reading.language))


def _remind(said: Conversation, tools: Sequence[Tool]) -> Reply | None:
    """Return the next message if a reminder is wanted, or None."""
    wish = reminders.wish(said.utterance, [tool.name for tool in tools])
    if wish is None:
        return None
    result = said.result(reminders.TOOL, wish.arguments)
    if result is None:
        return Reply(calls=(Call(reminders.TOOL, wish.arguments),)) if said.may_call else None
    told = reminders.tell(wish.arguments, result, wish.language)
    failure = answers.tell_failure(understand(reminders.TOOL, "", "{}"), result, wish.language)
    return Reply(told or failure)


def _next_call(step: _Step, said: Conversation) -> Call | None:
    """Return the call that a step still needs."""
    if step.source and said.result(step.source.name, {}) is None:
        return Call(step.source.name, {})
    arguments = _final_arguments(step, said)
    waits = arguments is not None and said.result(step.tool.name, arguments) is None
    return Call(step.tool.name, arguments) if arguments is not None and waits else None


def _final_arguments(step: _Step, said: Conversation) -> Arguments | None:
    """Return the arguments with a relative change worked out, or None when the current value is not known."""
    if step.change is None or step.source is None:
        return step.arguments
    entry, told = step.change.entry, said.result(step.source.name, {})
    current = told.number(*_topics_of(step.tool, entry)) if told and told.outcome == "ok" else None
    if current is None or entry.fit(current) != current:
        return None
    return {**step.arguments, entry.name: step.change.apply(current)}


def _answer(steps: Sequence[_Step], said: Conversation, reading: Reading) -> str:
    told = [text for step in steps if (text := _answer_step(step, said))]
    for call, result in () if told else said.done:
        # A call that this plan did not ask for
        told.append(_tell(understand(call.name, "", "{}"), result, call.arguments, reading))
    first, *others = dict.fromkeys(told)
    shorter = [other.removeprefix(say("okay", reading.language)) for other in others]
    if reading.language == "zh":
        return first + "".join(shorter)
    return " ".join([first, *(other[:1].upper() + other[1:] for other in shorter)])


def _answer_step(step: _Step, said: Conversation) -> str:
    arguments, language = _final_arguments(step, said), step.reading.language
    if arguments is not None:
        result = said.result(step.tool.name, arguments)
        return _tell(step.tool, result, arguments, step.reading) if result else ""
    source = said.result(step.source.name, {}) if step.source else None
    if source and source.outcome != "ok":
        return answers.tell_failure(step.tool, source, language)
    return answers.ask_goal(step.tool, step.change.entry, language) if step.change else ""


def _tell(tool: Tool, result: ToolResult, arguments: Arguments, reading: Reading) -> str:
    """Return the sentences that tell how a call went."""
    if result.outcome != "ok":
        return answers.tell_failure(tool, result, reading.language)
    if tool.read_only:
        return answers.tell_result(tool, result, reading)
    if result.speech and not {"set", "on", "off", *CHANGES} & set(tool.verbs):
        return answers.clean(result.speech)
    return answers.tell_done(tool, arguments, reading.language)


def _topics_of(tool: Tool, entry: Property) -> tuple[str, ...]:
    """Return the concepts by which an answer names the current value of an argument."""
    return entry.title.names("topic") or tool.topics


def _make_plan(text: str, tools: Sequence[Tool], earlier: Sequence[str], last_answer: str) -> _Plan:
    """Return the plan for what was said, understood by itself or else in the light of what was said before."""
    question: _Plan = None
    for said in (text, *_in_context(read(text), earlier, last_answer)):
        plan = _plan_one(said, tools)
        if isinstance(plan, tuple):
            return plan
        question = question or plan
    return question


def _plan_one(text: str, tools: Sequence[Tool]) -> _Plan:
    """Return the steps of one text; the whole counts unless every clause makes sense by itself."""
    reading = _without_address(read(text))
    clauses = _clauses(reading)
    steps = _by_clause(clauses, tools) if 1 < len(clauses) <= _MOST_CLAUSES else ()
    resolved = steps or _resolve(reading, tools)
    return (resolved,) if isinstance(resolved, _Step) else resolved


def _resolve(reading: Reading, tools: Sequence[Tool]) -> _Step | str | None:
    """Return what one clause means."""
    filled = [(tool, fill(reading, tool)) for tool in find_tools(reading, tools)]
    filled = [(tool, found) for tool, found in filled if not found.missing] or filled
    if not filled:
        return None
    tool, found = filled[0]
    if len(filled) > 1 and not tool.read_only:
        return answers.ask_which([tool for tool, _ in filled], reading.language)
    missing, change, source = found.missing[:1], found.change, None
    if change and change.entry.title.has("change"):
        return _Step(reading, tool, {**found.arguments, change.entry.name: change.apply(0)})
    if change:
        source = find_source(tool, tools, _topics_of(tool, change.entry))
        missing = missing if source else (change.entry,)
    if missing:
        return answers.ask_value(tool, missing[0], reading.language)
    return _Step(reading, tool, found.arguments, change, source)


def _by_clause(clauses: Sequence[Reading], tools: Sequence[Tool]) -> tuple[_Step, ...]:
    steps: list[_Step] = []
    for clause in clauses:
        step = _resolve(clause.with_actions_of(steps[-1].reading) if steps else clause, tools)
        if not isinstance(step, _Step):
            return ()
        steps.append(step)
    # `take a photo and tell me what you see` is one call, two lamps at once are two
    commands = [_essence(step) for step in steps if not step.tool.read_only]
    return tuple(steps) if len(set(commands)) == len(commands) else ()


def _essence(step: _Step) -> tuple[str, frozenset[tuple[str, Scalar]]]:
    free = {entry.name for entry in step.tool.properties if entry.kind == "string" and not entry.choices}
    return step.tool.name, frozenset(item for item in step.arguments.items() if item[0] not in free)


def _clauses(reading: Reading) -> list[Reading]:
    """Cut at pauses, at `and`, and before the second thing in `音量30亮度50`."""
    text = reading.text
    cuts = [found.span() for found in _JOINT.finditer(text)]
    topics = [mark.start for mark in reading.marks if mark.kind == "topic"]
    ends = {number.end for number in reading.numbers}
    cuts += [(at, at) for at in topics[1:] if len(text[:at].rstrip()) in ends]
    spans = pairwise([(0, 0), *sorted(cuts), (len(text), len(text))])
    return [piece for (_, start), (end, _) in spans if (piece := read(text[start:end])).text]


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

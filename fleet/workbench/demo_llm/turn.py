"""One turn of the demo model: a pure function from the conversation and the offered tools to its next message."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.workbench.demo_llm import answers
from fleet.workbench.demo_llm.arguments import Arguments
from fleet.workbench.demo_llm.plan import Step, make_plan, topics_of
from fleet.workbench.demo_llm.reading import Reading, read
from fleet.workbench.demo_llm.results import ToolResult
from fleet.workbench.demo_llm.schemas import Tool, understand
from fleet.workbench.demo_llm.words import say

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


def reply(said: Conversation, tools: Sequence[Tool], clock: Clock) -> Reply:
    """Return the next message."""
    reading = read(said.utterance)
    # The demo model has a clock of its own, and most tools that speak of days or times are no clocks
    told = None if said.done else answers.tell_clock(reading, clock())
    if told:
        return Reply(told)
    plan = make_plan(said.utterance, tools, said.earlier, said.last_answer)
    steps = plan if isinstance(plan, tuple) else ()
    calls = {call.name + call.written: call for step in steps if (call := _next_call(step, said))}
    if calls and said.may_call:
        return Reply(calls=tuple(calls.values()))
    if said.done:
        return Reply(_answer(steps, said, tools, reading))
    if isinstance(plan, str):
        return Reply(plan)
    return Reply(answers.make_small_talk(reading, tools) or say("not_understood", reading.language))


def _next_call(step: Step, said: Conversation) -> Call | None:
    """Return the call that a step still needs."""
    if step.source and said.result(step.source.name, {}) is None:
        return Call(step.source.name, {})
    arguments = _final_arguments(step, said)
    waits = arguments is not None and said.result(step.tool.name, arguments) is None
    return Call(step.tool.name, arguments) if arguments is not None and waits else None


def _final_arguments(step: Step, said: Conversation) -> Arguments | None:
    """Return the arguments with a relative change worked out, or None when the current value is not known."""
    if step.change is None or step.source is None:
        return step.arguments
    entry, told = step.change.entry, said.result(step.source.name, {})
    current = told.number(*topics_of(step.tool, entry)) if told and told.outcome == "ok" else None
    if current is None or entry.fit(current) != current:
        return None
    return {**step.arguments, entry.name: step.change.apply(current)}


def _answer(steps: Sequence[Step], said: Conversation, tools: Sequence[Tool], reading: Reading) -> str:
    told = [text for step in steps if (text := _answer_step(step, said))]
    known = {tool.name: tool for tool in tools}
    for call, result in () if told else said.done:
        # A call that this plan did not ask for
        tool = known.get(call.name) or understand(call.name, "", "{}")
        told.append(_tell(tool, result, call.arguments, reading))
    first, *others = dict.fromkeys(told)
    shorter = [other.removeprefix(say("okay", reading.language)) for other in others]
    if reading.language == "zh":
        return first + "".join(shorter)
    return " ".join([first, *(other[:1].upper() + other[1:] for other in shorter)])


def _answer_step(step: Step, said: Conversation) -> str:
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
    if tool.reads:
        return answers.tell_result(tool, result, reading)
    only_sets = {"set", "on", "off", "increase", "decrease"} & set(tool.verbs)
    return (
        answers.clean(result.speech)
        if result.speech and not only_sets
        else answers.tell_done(tool, arguments, reading.language)
    )

"""One turn of the demo model: a pure function from the conversation and the offered tools to its next message."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.workbench.demo_llm.answers import answer_step, ask, tell_missing_value
from fleet.workbench.demo_llm.chat import explains_itself, make_small_talk, tell_clock, tell_not_understood
from fleet.workbench.demo_llm.lexicon import Language
from fleet.workbench.demo_llm.plan import Missing, Plan, Step, Which, force, make_plan, topics_of
from fleet.workbench.demo_llm.reading import CHANGES, Reading, read
from fleet.workbench.demo_llm.results import ToolText
from fleet.workbench.demo_llm.schemas import Scalar, Tool, understand

MOST_ROUNDS = 4
"""Rounds of tool calls after which the model answers with what it has."""
_LONGEST_FOLLOW_UP = 6

_MOST_TOPICS = 2

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the model asks for."""

    name: str
    arguments: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Done:
    """A call of this turn, and what its tool answered."""

    name: str
    arguments: Mapping[str, Scalar]
    result: ToolText


@dataclass(frozen=True, slots=True)
class Conversation:
    """What has been said: the last user message, those before it, the answer just before it, this turn's calls."""

    utterance: str
    earlier: tuple[str, ...] = ()
    last_answer: str = ""
    done: tuple[Done, ...] = ()
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """What the request allows: `named` is a tool's name, `required` any call."""

    allowed: bool = True
    required: bool = False
    named: str = ""
    parallel: bool = True


@dataclass(frozen=True, slots=True)
class Reply:
    """The model's next message: either a text or calls."""

    text: str = ""
    calls: tuple[Call, ...] = ()


def reply(conversation: Conversation, tools: Sequence[Tool], choice: Choice, clock: Clock) -> Reply:
    """Return the next message. A forced choice holds until a tool has been called in this turn."""
    language = read(conversation.utterance).language
    if not choice.allowed and not conversation.done:
        return Reply(_talk(conversation, (), None, clock))
    if choice.named and not conversation.done:
        return _forced(conversation, [tool for tool in tools if tool.name == choice.named])
    if not (conversation.done or choice.required) and (told := tell_clock(read(conversation.utterance), clock())):
        # The demo model has a clock of its own, and most tools that speak of days or times are no clocks.
        return Reply(told)
    plan = plan_turn(conversation, tools)
    steps = plan if isinstance(plan, tuple) else ()
    open_ = _open_calls(steps, conversation) if choice.allowed and conversation.rounds < MOST_ROUNDS else ()
    if open_:
        return Reply(calls=open_ if choice.parallel else open_[:1])
    if conversation.done:
        return Reply(_answer(steps, conversation, tools, language))
    if choice.required and tools:
        return _forced(conversation, tools)
    return Reply(_talk(conversation, tools, plan, clock))


def plan_turn(conversation: Conversation, tools: Sequence[Tool]) -> Plan:
    """Return the plan for the utterance, understood by itself or else in the light of what was said before."""
    question: Plan = None
    for text in (conversation.utterance, *_with_context(conversation)):
        plan = make_plan(text, tools)
        if isinstance(plan, tuple):
            return plan
        question = question or plan
    return question


def _with_context(conversation: Conversation) -> tuple[str, ...]:
    """Return the utterance with what it leaves out: `40`, `even louder`, `再大一点`."""
    reading = read(conversation.utterance)
    valued = reading.numbers or CHANGES & set(reading.actions) or reading.names("value", "color") or reading.rest()
    if not valued or reading.names("topic") or len(reading.units) > _LONGEST_FOLLOW_UP:
        return ()
    return (*_after_question(conversation, reading), *_after_topic(conversation, reading), *_idiom(reading))


def _after_question(conversation: Conversation, reading: Reading) -> tuple[str, ...]:
    asked = any(mark in conversation.last_answer for mark in "?？")
    if not asked or not conversation.earlier or "要我做什么" in conversation.last_answer:
        return ()
    joint = "到" if reading.language == "zh" else " to "
    return (f"{conversation.earlier[-1].rstrip(' .。!！?？')}{joint}{reading.text}",)


def _after_topic(conversation: Conversation, reading: Reading) -> tuple[str, ...]:
    if reading.words or reading.runs or not conversation.earlier:
        return ()
    before = read(conversation.earlier[-1])
    topics = before.names("topic")
    spelt = " ".join(name.replace("_", " ") for name in topics)
    return (f"{spelt} {reading.text}",) if 0 < len(topics) <= _MOST_TOPICS else ()


def _idiom(reading: Reading) -> tuple[str, ...]:
    """Without any noun, `turn it up` and `大一点` mean the sound."""
    only = {name for mark in reading.marks for name in mark.names} - {"polite", "filler", "set"}
    bare = only in ({"increase"}, {"decrease"}) and not (reading.words or reading.runs)
    return (f"{'音量' if reading.language == 'zh' else 'volume'} {reading.text}",) if bare else ()


def _forced(conversation: Conversation, tools: Sequence[Tool]) -> Reply:
    """Call a tool although none was understood: the named one, or the first."""
    step = force(conversation.utterance, tools[0])
    return Reply(calls=(Call(step.tool.name, step.arguments),))


def _open_calls(steps: Sequence[Step], conversation: Conversation) -> tuple[Call, ...]:
    """Return the calls that the steps still need, each once."""
    calls = [call for step in steps if (call := _next_call(step, conversation)) is not None]
    unique = {_key(call.name, call.arguments): call for call in calls}
    return tuple(unique.values())


def _next_call(step: Step, conversation: Conversation) -> Call | None:
    if step.change is not None and step.source is not None:
        told = _find(conversation, step.source.name, {})
        if told is None:
            return Call(step.source.name, {})
    arguments = _final_arguments(step, conversation)
    if arguments is None or _find(conversation, step.tool.name, arguments) is not None:
        return None
    return Call(step.tool.name, arguments)


def _final_arguments(step: Step, conversation: Conversation) -> Mapping[str, Scalar] | None:
    """Return the arguments with a relative change worked out, or None when the current value is not known."""
    if step.change is None or step.source is None:
        return step.arguments
    told = _find(conversation, step.source.name, {})
    current = told.number(*topics_of(step.tool, step.change.entry)) if told and told.outcome == "ok" else None
    if current is None or not step.change.entry.fits(current):
        return None
    return {**step.arguments, step.change.entry.name: step.change.apply(current)}


def _find(conversation: Conversation, name: str, arguments: Mapping[str, Scalar]) -> ToolText | None:
    wanted = _key(name, arguments)
    return next((done.result for done in conversation.done if _key(done.name, done.arguments) == wanted), None)


def _key(name: str, arguments: Mapping[str, Scalar]) -> str:
    return f"{name} {json.dumps(dict(arguments), sort_keys=True, ensure_ascii=False)}"


def _answer(steps: Sequence[Step], conversation: Conversation, tools: Sequence[Tool], language: Language) -> str:
    told = [said for step in steps if (said := _answer_step(step, conversation, language))]
    if not told:
        told = [_answer_done(done, conversation, tools, language) for done in conversation.done]
    return _joined(told, language)


def _answer_step(step: Step, conversation: Conversation, language: Language) -> str:
    arguments = _final_arguments(step, conversation)
    if arguments is None:
        source = _find(conversation, step.source.name, {}) if step.source else None
        if source is not None and source.outcome != "ok":
            return answer_step(step, source, {}, language)
        return tell_missing_value(step, language)
    result = _find(conversation, step.tool.name, arguments)
    return answer_step(step, result, arguments, language) if result else ""


def _answer_done(done: Done, conversation: Conversation, tools: Sequence[Tool], language: Language) -> str:
    """Tell the outcome of a call that this plan did not ask for, such as a forced one."""
    tool = next((tool for tool in tools if tool.name == done.name), understand(done.name, "", {}))
    return answer_step(Step(read(conversation.utterance), tool, done.arguments), done.result, done.arguments, language)


def _joined(told: Sequence[str], language: Language) -> str:
    """Join sentences and say `okay` only once."""
    opening = "好的，" if language == "zh" else "Okay, "
    first, *others = dict.fromkeys(told)
    shorter = [other.removeprefix(opening) for other in others]
    if language == "zh":
        return first + "".join(shorter)
    return " ".join([first, *(other[:1].upper() + other[1:] for other in shorter)])


def _talk(conversation: Conversation, tools: Sequence[Tool], plan: Plan, clock: Clock) -> str:
    reading = read(conversation.utterance)
    if isinstance(plan, Which | Missing):
        return ask(plan, reading.language)
    said = make_small_talk(reading, tools, clock())
    if said is not None:
        return said
    return tell_not_understood(reading, tools, again=explains_itself(conversation.last_answer))

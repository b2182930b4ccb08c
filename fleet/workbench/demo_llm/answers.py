"""What is said: confirmations, values, failures, questions back. Plain sentences, the first one short."""

from collections.abc import Mapping, Sequence

from fleet.core.text.speakable import speakable
from fleet.workbench.demo_llm.lexicon import Language, concept, label
from fleet.workbench.demo_llm.naming import (
    LOOKING,
    color_of,
    named_color,
    say_keys,
    say_measured,
    say_state,
    say_subject,
    say_tool,
    say_value,
)
from fleet.workbench.demo_llm.plan import Missing, Step, Which
from fleet.workbench.demo_llm.reading import Reading
from fleet.workbench.demo_llm.results import Leaf, ToolText, label_keys
from fleet.workbench.demo_llm.schemas import Property, Scalar, Tool

_COMPONENTS = {"r": "red", "g": "green", "b": "blue"}
_MOST_VALUES = 6
_MOST_CHOICES = 6
_LONGEST_SPEECH = 600
_LONGEST_REASON = 160


def answer_step(step: Step, result: ToolText, arguments: Mapping[str, Scalar], language: Language) -> str:
    """Return the sentences that tell how a call went."""
    if result.outcome != "ok":
        return tell_failure(step.tool, result, language)
    if step.tool.reads:
        return _tell(step, result, language)
    spoken = result.speech
    if spoken and not _only_sets(step.tool):
        return clean(spoken)
    return confirm(step.tool, arguments, language)


def confirm(tool: Tool, arguments: Mapping[str, Scalar], language: Language) -> str:
    """Return what is now so after a call that worked."""
    told = _told(tool, arguments, language)
    done = _performed(tool, arguments, language) or say_tool(tool, language)
    if language == "zh":
        return f"好的，{'，'.join(told)}。" if told else f"好的，已经完成：{done}。"
    return f"Okay, {' and '.join(told)}." if told else f"Okay, done: {done}."


def tell_failure(tool: Tool, result: ToolText, language: Language) -> str:
    """Return that it did not work, or that nobody knows, and why."""
    reason = clean(result.reason)[:_LONGEST_REASON].rstrip(" .。")
    wanted = say_tool(tool, language)
    if language == "zh":
        start = f"没能{wanted}。" if result.outcome == "failed" else f"我试着{wanted}，但不知道是否成功。"
        return f"{start}原因是：{reason}。" if reason else f"{start}设备没有说明原因。"
    failed = f"I could not {wanted}."
    start = failed if result.outcome == "failed" else f"I tried to {wanted}, but I do not know whether it worked."
    return f"{start} The reason given is: {reason}." if reason else f"{start} No reason was given."


def ask(question: Which | Missing, language: Language) -> str:
    """Return the question for what was not said."""
    if isinstance(question, Which):
        return _ask_which(question, language)
    return _ask_missing(question.tool, question.entry, language)


def _ask_missing(tool: Tool, entry: Property, language: Language) -> str:
    subject, key = say_subject(tool, entry, {}, language), say_keys([entry.name], language)
    options = _options(entry, language)
    if entry.choices and not _changes(entry, entry.choices[0].value):
        return f"请问是哪个{key}？{options}" if language == "zh" else f"Which {key} do you mean? {options}"
    if entry.kind == "string" and not entry.choices:
        return f"请问{key}是什么？" if language == "zh" else f"What should the {key} be?"
    if language == "zh":
        return f"{subject}要设成{'什么' if entry.choices else '多少'}？{options}"
    return f"What should {subject} be? {options}".strip()


def tell_missing_value(step: Step, language: Language) -> str:
    """Return that the current value could not be found, so that a relative change needs a number."""
    entry = step.change.entry if step.change else None
    subject = say_subject(step.tool, entry, {}, language)
    if language == "zh":
        return f"我不知道{subject}现在是多少。请说一个具体的数值，要设成多少？"
    return f"I do not know what {subject} is now. Which value should it be?"


def clean(text: str) -> str:
    """Return prose without Markdown and line breaks, cut at 600 characters."""
    plain = " ".join(said for line in text.splitlines() if (said := speakable(line)))
    return plain if len(plain) <= _LONGEST_SPEECH else plain[:_LONGEST_SPEECH].rsplit(" ", 1)[0] + "…"


def _only_sets(tool: Tool) -> bool:
    return bool({"set", "on", "off", "increase", "decrease"} & set(tool.verbs))


def _told(tool: Tool, arguments: Mapping[str, Scalar], language: Language) -> list[str]:
    whole = _color(tool, arguments, language) or _clock_time(tool, arguments)
    if whole:
        return [_is_now(say_subject(tool, None, arguments, language), whole, language)]
    told = [
        _argument(tool, entry, arguments, language)
        for entry in tool.properties
        if entry.name in arguments and _changes(entry, arguments[entry.name])
    ]
    switched = [action == "on" for action in tool.verbs if action in {"on", "off"}]
    if switched and not told:
        return [_is_switched(tool, arguments, switched[0], language)]
    return told


def _performed(tool: Tool, arguments: Mapping[str, Scalar], language: Language) -> str:
    """Return the action that was chosen by an argument: `action="next"`."""
    chosen = (
        choice for entry in tool.properties for choice in entry.choices if choice.value == arguments.get(entry.name)
    )
    return next((label(name, language) for choice in chosen for name in choice.concepts if _is_action(name)), "")


def _is_action(name: str) -> bool:
    return concept(name).kind == "action" and name not in {"on", "off"}


def _color(tool: Tool, arguments: Mapping[str, Scalar], language: Language) -> str:
    mixed = color_of(arguments, [entry.name for entry in tool.properties if _component(entry)])
    spelt = [str(arguments.get(entry.name, "")) for entry in tool.properties if entry.reading.has("color")]
    color = mixed or next((found for value in spelt if (found := named_color(value))), None)
    return label(color, language) if color else ""


def _clock_time(tool: Tool, arguments: Mapping[str, Scalar]) -> str:
    parts = {
        name: arguments.get(entry.name)
        for entry in tool.properties
        for name in ("hour", "minute")
        if entry.reading.has(name)
    }
    hour, minute = parts.get("hour"), parts.get("minute")
    return f"{hour}:{minute:02d}" if isinstance(hour, int) and isinstance(minute, int) else ""


def _component(entry: Property) -> bool:
    return entry.name.lower() in {*_COMPONENTS, *_COMPONENTS.values()}


def _changes(entry: Property, value: Scalar) -> bool:
    """Tell the value that is set from the argument that says where."""
    if entry.kind == "string" and not entry.choices:
        return False
    chosen = [choice for choice in entry.choices if choice.value == value]
    return not (chosen and not (entry.reading.has("theme") or _sayable(chosen[0].concepts, entry)))


def _sayable(concepts: frozenset[str], entry: Property) -> bool:
    if any(_is_action(name) for name in concepts):
        return False
    named = {*concepts, *entry.concepts}
    kinds = {concept(name).kind for name in named if name not in {"theme", "color"}}
    return not named & {"room", "device"} and "place" not in kinds and not _is_thing(concepts)


def _is_thing(concepts: frozenset[str]) -> bool:
    """Tell `device="fan"` from `mode="cool"`."""
    return any(concept(name).kind == "topic" for name in concepts)


def _argument(tool: Tool, entry: Property, arguments: Mapping[str, Scalar], language: Language) -> str:
    value = arguments[entry.name]
    spelt = str(value).lower()
    if isinstance(value, bool) or spelt in {"on", "off", "open", "close", "closed"}:
        return _is_switched(tool, arguments, value is True or spelt in {"on", "open"}, language)
    subject = say_subject(tool, entry, arguments, language)
    if _component(entry):
        subject = say_keys([_COMPONENTS.get(entry.name.lower(), entry.name)], language)
    measured = say_measured(entry, value, language) if isinstance(value, int | float) else ""
    return _is_now(subject, measured or say_value(value, entry.reading.names("topic"), language), language)


def _is_now(subject: str, value: str, language: Language) -> str:
    return f"{subject}已经设为{value}" if language == "zh" else f"{subject} is now {value}"


def _is_switched(tool: Tool, arguments: Mapping[str, Scalar], on: bool, language: Language) -> str:
    subject = say_subject(tool, None, arguments, language)
    state = say_state(tool, arguments, on, language)
    if language == "zh":
        return f"{subject}已经{state}"
    return f"{subject or 'it'} {_be(subject)} {state}"


def _be(subject: str) -> str:
    return "are" if subject.endswith("lights") else "is"


def _tell(step: Step, result: ToolText, language: Language) -> str:
    leaves = result.find(step.reading)
    if leaves:
        return tell_values(leaves, language)
    if not result.leaves:
        return _tell_prose(result, language)
    topics = set(step.reading.names("topic"))
    if topics and not step.reading.has("status") and not topics <= set(step.tool.topics):
        return clean(result.speech) or _not_told(step.reading, language)
    return tell_values(result.leaves, language)


def _tell_prose(result: ToolText, language: Language) -> str:
    if isinstance(result.data, bool):
        return say_value(result.data, (), language).capitalize() + ("。" if language == "zh" else ".")
    return clean(result.text) or ("没有收到内容。" if language == "zh" else "The answer was empty.")


def _not_told(reading: Reading, language: Language) -> str:
    if language == "zh":
        return f"设备没有报告{label(reading.names('topic')[0], 'zh')}。"
    return f"The device did not report the {label(reading.names('topic')[0], 'en')}."


def tell_values(leaves: Sequence[Leaf], language: Language) -> str:
    """Return at most six values as sentences."""
    said = [_value_sentence(leaf, language) for leaf in leaves[:_MOST_VALUES]]
    return LOOKING + "".join(said) if language == "zh" else " ".join(said)


def _value_sentence(leaf: Leaf, language: Language) -> str:
    keys = label_keys(leaf.path)
    context = tuple(leaf.concepts(1) | leaf.concepts(0))
    if isinstance(leaf.value, bool):
        return _truth_sentence(leaf, language)
    value = say_value(leaf.value, context, language)
    name = say_keys(keys, language)
    return f"{name}是{value}。" if language == "zh" else f"The {name} is {value}."


def _truth_sentence(leaf: Leaf, language: Language) -> str:
    last = say_keys(leaf.path[-1:], language)
    above = say_keys(leaf.path[-2:-1], language) if len(leaf.path) > 1 else ""
    participle = leaf.path[-1].lower().endswith(("ing", "ed"))
    if language == "zh":
        if participle:
            return f"{'正在' if leaf.value else '没有在'}{last}。"
        return f"{above or last}是{'打开' if leaf.value else '关闭'}的。"
    if participle:
        return f"{('The ' + above) if above else 'It'} is {'' if leaf.value else 'not '}{last}."
    subject = above if above and last in {"on", "power", "state", "enabled"} else last
    return f"The {subject} is {'on' if leaf.value else 'off'}."


def _ask_which(question: Which, language: Language) -> str:
    names = list(dict.fromkeys(say_tool(tool, language) for tool in question.tools))[:_MOST_CHOICES]
    if language == "zh":
        return f"你指的是哪一个？{'，还是'.join(names)}？"
    return f"Which one do you mean? {' or '.join(names).capitalize()}?"


def _options(entry: Property, language: Language) -> str:
    context = entry.reading.names("topic")
    if entry.choices:
        said = [say_value(choice.value, context, language) for choice in entry.choices[:_MOST_CHOICES]]
        return f"可以是{'、'.join(said)}。" if language == "zh" else f"It can be {' or '.join(said)}."
    if entry.minimum is None or entry.maximum is None:
        return ""
    low, high = f"{entry.minimum:g}", f"{entry.maximum:g}"
    return f"可以从{low}到{high}。" if language == "zh" else f"It can be from {low} to {high}."

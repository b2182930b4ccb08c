"""Desired state: what a device should be set to, what it reports, and what follows from the difference.

Pure decisions. A device is worked on in rounds: `plan` says what to call, `conclude` what the outcomes mean. Between
two rounds nothing is kept but the properties, so any process may do the next one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from fleet.core.user_tools import user_tool
from fleet.wire.control.strict_json import read_json
from fleet.wire.property_states import PropertyPolicy, PropertyState

STATUS: Final = "self.get_device_status"
TOOLS: Final = "tools."
"""Begins the name of a property that is a call of a board's tool: it cannot be read back."""
OWN: Final = ("timezone", "language")
"""Properties that the server itself keeps for a device."""
MOST_CORRECTIONS: Final = 3
CORRECTIONS_MS: Final = 3_600_000
"""A property is corrected so often within so long; then nobody fights for it any more."""
MOST_TRIES: Final = 3
"""Calls whose outcome is unknown, if the call may be repeated."""
GIVEN_UP: Final = "it was corrected 3 times within an hour and is left alone now"
_NO_TOOL: Final = "the device has no such tool"
_NOT_REPORTED: Final = "the device does not report it"
_LONGEST_TEXT: Final = 200
_LONGEST_VALUE: Final = 63
_FALSE: Final = "false"
"""How firmware says that it does not know a theme."""


@dataclass(frozen=True, slots=True)
class Setter:
    """How a property is set and read back: the tool, its argument, and the place in the device's status."""

    tool: str
    argument: str
    section: str


SETTERS: Final[Mapping[str, Setter]] = {
    "volume": Setter("self.audio_speaker.set_volume", "volume", "audio_speaker"),
    "brightness": Setter("self.screen.set_brightness", "brightness", "screen"),
    "theme": Setter("self.screen.set_theme", "theme", "screen"),
}


@dataclass(frozen=True, slots=True)
class DesiredProperty:
    """A property of a device as it should be, and what became of that."""

    value: Any
    policy: PropertyPolicy = "once"
    version: int = 1
    """Version of the desired state that set it."""
    state: PropertyState = "pending"
    since: int = 0
    """When it got its state, in ms since 1970."""
    applied: int = 0
    """The version that was dealt with: the device took it, refused it, or nobody knows."""
    text: str = ""
    corrections: Sequence[int] = ()
    """When it was corrected of late."""
    tries: int = 0
    given_up: bool = False
    origin: str = ""
    """Who set it, where that may be done again and must count once: an attempt of a job."""

    def turned(self, state: PropertyState, now: int, text: str = "", **more: Any) -> "DesiredProperty":
        """Return it in another state."""
        since = self.since if state == self.state else now
        return replace(self, state=state, since=since, text=text, **more)

    @property
    def open(self) -> bool:
        """Whether its version was not dealt with yet."""
        return self.policy != "watch" and self.applied < self.version and self.state != "unsupported"

    @property
    def correctable(self) -> bool:
        """Whether it is to be set again."""
        return self.policy == "enforce" and self.state == "drift" and not self.given_up


Properties = Mapping[str, DesiredProperty]


@dataclass(frozen=True, slots=True)
class StateCall:
    """A call of a round. `property` is empty where the device is asked for its status."""

    property: str
    version: int
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallResult:
    """What became of a call."""

    state: Literal["ok", "error", "not_sent", "unknown"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What a round does, and the properties at its begin."""

    properties: Properties
    calls: Sequence[StateCall]


def is_readable(name: str) -> bool:
    """Return whether a property can be read back."""
    return name in SETTERS or name in OWN


def tool_of(name: str) -> str:
    """Return the tool that sets a property; empty if the server keeps it."""
    return SETTERS[name].tool if name in SETTERS else name.removeprefix(TOOLS) if name.startswith(TOOLS) else ""


def plan(properties: Properties, tools: Collection[str], now: int) -> RoundPlan:
    """Return the calls that a connected device gets now: what is to be set, then the question for its status.

    Args:
        properties: As they are now.
        tools: Names of the tools that the device offers.
        now: In ms since 1970.
    """
    after, calls = dict(properties), list[StateCall]()
    for name, known in properties.items():
        if name in OWN:
            continue
        one, tool = _supported(name, known, tools, now), tool_of(name)
        wanted = one.open
        if not wanted and one.correctable:
            one = _corrected(one, now)
            wanted = not one.given_up
        if wanted:
            argument = SETTERS[name].argument if name in SETTERS else ""
            arguments = {argument: one.value} if argument else dict(one.value)
            calls.append(StateCall(name, one.version, tool, arguments))
        after[name] = one
    if STATUS in tools and any(name in SETTERS and one.state != "unsupported" for name, one in after.items()):
        calls.append(StateCall("", 0, STATUS))
    return RoundPlan(after, calls)


def keep_own(properties: Properties, own: Mapping[str, str], now: int) -> tuple[dict[str, DesiredProperty], list[str]]:
    """Return the properties after a look at what the server keeps for a device, and those that are to be written.

    Args:
        properties: As they are now.
        own: The values of `OWN`; one that is missing is empty.
        now: In ms since 1970.
    """
    after, writes = dict(properties), list[str]()
    for name in OWN:
        if name not in after:
            continue
        one = judge(after[name], own.get(name, ""), now)
        wanted = one.open
        if one.correctable:
            one = _corrected(one, now)
            wanted = not one.given_up
        after[name] = one
        if wanted:
            writes.append(name)
    return after, writes


def conclude(
    properties: Properties, calls: Sequence[StateCall], results: Sequence[CallResult], now: int
) -> tuple[dict[str, DesiredProperty], dict[str, Any] | None]:
    """Return the properties after a round, and what the device reported; None if it did not tell its status.

    Args:
        properties: As they are now; what somebody changed since the round began is still to be done.
        calls: Of the round.
        results: Of the calls, in their order.
        now: In ms since 1970.
    """
    after, reported = dict(properties), None
    for call, result in zip(calls, results, strict=True):
        one = after.get(call.property)
        if not call.property:
            reported = read_status(result.text) if result.state == "ok" else None
        elif one is not None and one.version == call.version and one.policy != "watch":
            after[call.property] = _taken(one, call, result, now)
    for name in SETTERS.keys() & after.keys():
        if reported is not None:
            after[name] = judge(after[name], reported.get(name), now)
    return after, reported


def judge(one: DesiredProperty, reported: Any, now: int) -> DesiredProperty:
    """Return a property after the device, or the server itself, reported its value; None where it reports none."""
    if reported is None:
        return one.turned("unsupported", now, _NOT_REPORTED) if one.policy == "watch" else one
    if equal(one.value, reported):
        return one.turned("confirmed", now, applied=one.version, given_up=False, tries=0)
    if one.policy == "watch":
        return one.turned("drift", now)
    if one.open or one.state in ("refused", "unsupported"):
        return one
    if one.policy == "once" and one.state in ("confirmed", "changed"):
        return one.turned("changed", now)
    return one.turned("drift", now, one.text if one.given_up else "")


def equal(value: Any, reported: Any) -> bool:
    """Return whether a reported value is the desired one; numbers are compared as the device bounds them."""
    if isinstance(value, int) and isinstance(reported, int | float):
        return value == round(min(100.0, max(0.0, float(reported))))
    return bool(value == reported)


def read_status(text: str) -> dict[str, Any]:
    """Return the properties that a device reports in the answer to `self.get_device_status`."""
    try:
        found = read_json(text)
    except (ValueError, RecursionError):
        return {}
    reported: dict[str, Any] = {}
    for name, setter in SETTERS.items():
        section = found.get(setter.section) if isinstance(found, dict) else None
        value = section.get(setter.argument) if isinstance(section, dict) else None
        wanted = str if name == "theme" else int | float
        if isinstance(value, wanted) and not isinstance(value, bool):
            reported[name] = value[:_LONGEST_VALUE] if isinstance(value, str) else value
    return reported


def _supported(name: str, one: DesiredProperty, tools: Collection[str], now: int) -> DesiredProperty:
    needed = STATUS if one.policy == "watch" else tool_of(name)
    if needed not in tools and user_tool(needed) is None:
        return one.turned("unsupported", now, _NO_TOOL)
    return one.turned("pending", now, applied=0) if one.state == "unsupported" and one.text == _NO_TOOL else one


def _corrected(one: DesiredProperty, now: int) -> DesiredProperty:
    """Return a property that is corrected now, or given up."""
    recent = tuple(at for at in one.corrections if at > now - CORRECTIONS_MS)
    if len(recent) >= MOST_CORRECTIONS:
        return one.turned("drift", now, GIVEN_UP, given_up=True)
    return replace(one, corrections=(*recent, now))


def _taken(one: DesiredProperty, call: StateCall, result: CallResult, now: int) -> DesiredProperty:
    """Return a property after its call."""
    text = result.text[:_LONGEST_TEXT]
    match result.state:
        case "ok" if text.strip().lower() == _FALSE:
            return one.turned("refused", now, "the device does not take this value", applied=one.version)
        case "ok":
            return one.turned("sent", now, applied=one.version, tries=0)
        case "error":
            return one.turned("refused", now, text, applied=one.version)
        case "not_sent":
            return replace(one, text=text) if one.open else one
        case "unknown":
            again = is_readable(call.property) and one.tries + 1 < MOST_TRIES
            if again:
                return replace(one, tries=one.tries + 1, text=text)
            return one.turned("unknown", now, text, applied=one.version)

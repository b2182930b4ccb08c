"""Operators' calls of tools, texts for devices, and what devices remember, as the API shows them."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from fleet.wire.control.shapes import NUMBER, Shape, Time

LONGEST_TEXT = 4_000
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TEXT)]
_Language = Annotated[str, StringConstraints(pattern="^[a-z]{2}$")]


class ToolCallRequest(Shape):
    """A call of a tool."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"arguments": {"volume": 40}}]})
    arguments: Annotated[dict[str, Any], Field(default_factory=dict, max_length=64)]
    """They must fit the tool's schema."""
    within: Annotated[int, Field(ge=1, le=3600), NUMBER] = 60
    """Seconds in which the call may be sent to the device; after that it ends as `not_sent`."""


class ToolCallState(Shape):
    """A call. `unknown`: it was sent, and nobody can tell whether the device did it; it is never sent again."""

    id: str
    device: str
    tool: str
    state: Literal["queued", "sent", "ok", "error", "not_sent", "unknown"]
    text: str
    """The device's answer as text, or the reason why there is none."""
    queued: Time
    ended: Time | None


class TurnRequest(Shape):
    """A text to which the device's agent answers."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "What time is it?"}]})
    text: _Text
    language: _Language | None = None
    interrupt: bool = False
    """Whether a turn that is being answered ends for it; else the text is refused meanwhile."""


class SayRequest(Shape):
    """A text that the device speaks as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Dinner is ready."}]})
    text: _Text
    language: _Language | None = None
    interrupt: bool = False


class TurnState(Shape):
    """A turn that began as text. `text` is what was said, complete if the state is `answered`."""

    id: str
    device: str
    state: Literal["accepted", "answered", "failed", "interrupted", "busy"]
    text: str


class FactList(Shape):
    """What a device remembers of its users, the oldest first."""

    items: list[str]


class FactChoice(Shape):
    """Facts that are to be forgotten."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"facts": ["The user's name is Ada."]}]})
    facts: Annotated[list[Annotated[str, StringConstraints(max_length=1_000)]], Field(min_length=1, max_length=100)]


class Forgotten(Shape):
    """How many facts were deleted."""

    count: int

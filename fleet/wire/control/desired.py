"""Desired states of devices, as the API of control gives and takes them."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from fleet.ground.local_time import offset
from fleet.wire.control.shapes import NUMBER, Shape, Time
from fleet.wire.property_states import PropertyPolicy, PropertyState

LARGEST_ARGUMENTS = 2_000
"""Characters of the arguments of a tool as text."""
PropertyName = Literal["volume", "brightness", "theme", "timezone", "language"]
"""A property that can be read back."""
_Percent = Annotated[int, Field(ge=0, le=100), NUMBER]
_ToolName = Annotated[str, StringConstraints(pattern=r"^[\w.-]{1,128}$")]


def _zone(text: str) -> str:
    if offset(text, datetime.now(UTC)) is None:
        raise ValueError("a time zone is a name such as Europe/Berlin, or minutes east of UTC")
    return text


def _small(arguments: dict[str, Any] | None) -> dict[str, Any] | None:
    if len(repr(arguments)) > LARGEST_ARGUMENTS:
        raise ValueError(f"arguments have at most {LARGEST_ARGUMENTS} characters")
    return arguments


class DesiredValues(Shape):
    """A merge patch of the desired state: null removes a property, one that is not named stays as it is.

    `agent` is the id of the device's own agent. `tools` holds the arguments of board's tools, by their names.
    """

    volume: _Percent | None = None
    brightness: _Percent | None = None
    theme: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,32}$")] | None = None
    timezone: Annotated[str, StringConstraints(max_length=63), AfterValidator(_zone)] | None = None
    language: Annotated[str, StringConstraints(pattern="^[a-z]{2}$")] | None = None
    agent: Annotated[int, Field(ge=1, lt=2**62), NUMBER] | None = None
    tools: (
        Annotated[dict[_ToolName, Annotated[dict[str, Any] | None, AfterValidator(_small)]], Field(max_length=16)]
        | None
    ) = None


class DesiredPatch(Shape):
    """A change of a desired state; a policy that is null becomes `once` again."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"desired": {"volume": 40, "theme": None}, "policies": {"volume": "enforce"}}]}
    )
    desired: DesiredValues = DesiredValues()
    policies: Annotated[dict[PropertyName, PropertyPolicy | None], Field(default_factory=dict)]


class DesiredPropertyView(Shape):
    """A property: what it should be, what the device reports (null: nothing), and what became of it.

    `name` is that of the property, or `tools.` with the name of a tool.
    """

    name: str
    desired: Any
    reported: Any
    policy: PropertyPolicy
    state: PropertyState
    text: str
    since: Time


class DesiredDocument(Shape):
    """The desired state of a device. Its version, 0 while nobody desired anything, is also its ETag."""

    device: str
    version: int
    desired: dict[str, Any]
    policies: dict[str, PropertyPolicy]
    reported: dict[str, Any]
    reported_at: Time | None
    properties: list[DesiredPropertyView]
    drift: bool

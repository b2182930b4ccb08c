"""Agents: drafts, published versions, assignments, and a trial in text."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from fleet.wire.agents import AgentDocument
from fleet.wire.control.jobs import JobPreview, SkipCount
from fleet.wire.control.shapes import NUMBER, USUAL_MOST, MostDevices, Shape, Time

ObjectName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,63}$")]
Notes = Annotated[str, StringConstraints(max_length=4000)]


def _refuse_unknown(value: Any) -> Any:
    """Refuse fields that a document does not have: what people write is checked, what is stored is not."""
    if isinstance(value, dict):
        _check(value, AgentDocument.model_construct(), "")
    return value


def _check(value: dict[Any, Any], part: Any, place: str) -> None:
    known = type(part).model_fields
    for name, inner in value.items():
        if name not in known:
            raise ValueError(f"there is no field {place}{str(name)[:60]}")
        default = known[name].default
        if isinstance(inner, dict) and hasattr(type(default), "model_fields"):
            _check(inner, default, f"{place}{name}.")


Draft = Annotated[AgentDocument, BeforeValidator(_refuse_unknown)]
_EXAMPLE: dict[str, Any] = {
    "prompt": "You are a pirate.",
    "language": "en",
    "voice": {"name": "zm_yunxi", "speed": 1.1},
}


class NewAgent(Shape):
    """An agent to make. It counts for no device before it is published and assigned."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "pirate", "draft": _EXAMPLE}]})

    name: ObjectName
    notes: Notes = ""
    draft: Draft = AgentDocument()


class AgentChange(Shape):
    """What to change of an agent; a draft replaces the whole draft."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"notes": "For the ships."}]})

    name: ObjectName | None = None
    notes: Notes | None = None
    draft: Draft | None = None


class Agent(Shape):
    """An agent. `live` is the number of the version that counts, 0 while none was published.

    `version` counts the changes of the agent itself; it is the ETag.
    """

    id: int
    name: str
    notes: str
    draft: AgentDocument
    live: int
    created: Time
    version: int = 0


class AgentVersion(Shape):
    """A published version of an agent; it never changes."""

    number: int
    document: AgentDocument
    author: str
    created: Time
    live: bool


class Rollback(Shape):
    """The version that is to count again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"number": 1}]})

    number: Annotated[int, Field(ge=1, le=1_000_000), NUMBER]
    most: MostDevices | None = None
    """Devices that may have the agent; with more of them it is refused. Unless it is named, any number may."""


class Trial(Shape):
    """A text for the draft of an agent. Nobody's history, tools or memory take part."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Who are you?"}]})

    text: Annotated[str, StringConstraints(min_length=1, max_length=4000)]


class TrialAnswer(Shape):
    """What the model of a draft answered."""

    text: str
    seconds: float
    input_tokens: int
    output_tokens: int


class NewAssignment(Shape):
    """Whom to give an agent: one of `device` (a MAC), `group` (its id) and `site`.

    A device's own agent goes before that of its groups, that of the group with the highest rank before others, and all
    before that of the site.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"site": True}]})

    device: Annotated[str, StringConstraints(max_length=32)] | None = None
    group: Annotated[int, Field(ge=1, le=2**53), NUMBER] | None = None
    site: Literal[True] | None = None
    rank: Annotated[int, Field(ge=-1000, le=1000), NUMBER] = 0
    most: MostDevices = USUAL_MOST
    """Devices that may get another agent by this. With more of them it is refused, and nothing changes: read
    `POST /v1/assignments:preview`, and name their number; or make a job, which gives it to a few of them first."""


class AssignmentTrial(NewAssignment):
    """A change of an assignment that is only looked at. Without `agent` the assignment is taken away."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"agent": 3, "site": True}]})

    agent: Annotated[int, Field(ge=1, le=2**53), NUMBER] | None = None


class AssignmentPreview(JobPreview):
    """What a change would do to the agents of devices: `changing` devices get another one, `skipped` ones keep theirs.

    Of the former, `talking` ones are in a conversation now, and get it with their next turn. With more than 100,000
    connected devices, `talking` is an estimate. If `counted` is false, counting took too long: then `changing` is the
    number that it can be at most, and why others keep their agent is not known. `query` finds the devices that change,
    if a query can; it is empty if none does.
    """

    changing: int
    talking: int
    counted: bool = True
    query: str = ""


class AgentTrial(Shape):
    """A change of an agent that is only looked at: another version of it counts, or it is deleted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"deleted": True}]})

    deleted: bool = False


class NextAgent(Shape):
    """How many devices get an agent in place of a deleted one; without a name they have the settings of the server."""

    agent: str
    devices: int


class AgentPreview(AssignmentPreview):
    """What a change of an agent would do: `changing` devices have it by the assignments.

    `given` says why they have it. If the agent is to be deleted, `instead` says what they get. `late` devices are still
    being given the agent, or another one in its place, which takes half a minute or, of a large group, some more; until
    then `query` finds who has it and not who gets it. All three are empty if counting took too long.
    """

    given: list[SkipCount]
    instead: list[NextAgent]
    late: int = 0


class Assignment(Shape):
    """An agent that was given to a device, a group or the site."""

    agent: int
    device: str | None = None
    group: int | None = None
    site: bool = False
    rank: int = 0


class Settled(Shape):
    """How many devices got another agent; `more` if the rest of them gets it within half a minute."""

    devices: int
    more: bool = False


class Compiled(Shape):
    """What was written into Redis."""

    agents: int
    devices: int

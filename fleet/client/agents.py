"""Calls about agents and who has them."""

from fleet.client.call import Call, Nothing
from fleet.wire.control.agents import (
    Agent,
    AgentChange,
    AgentPreview,
    AgentTrial,
    AgentVersion,
    Assignment,
    AssignmentPreview,
    AssignmentTrial,
    Compiled,
    NewAgent,
    NewAssignment,
    Rollback,
    Settled,
    Trial,
    TrialAnswer,
)
from fleet.wire.control.shapes import USUAL_MOST, ListPage


def listing(limit: int = 500) -> Call[ListPage[Agent]]:
    """List agents."""
    return Call("GET", "/agents", ListPage[Agent], {"limit": limit})


def create(agent: NewAgent) -> Call[Agent]:
    """Make an agent; it counts for nobody before it is published and assigned."""
    return Call("POST", "/agents", Agent, body=agent)


def read(agent: int) -> Call[Agent]:
    """Read an agent with its draft."""
    return Call("GET", f"/agents/{agent}", Agent)


def change(agent: int, wanted: AgentChange) -> Call[Agent]:
    """Change name, notes or draft of an agent."""
    return Call("PATCH", f"/agents/{agent}", Agent, body=wanted)


def remove(agent: int, most: int = USUAL_MOST) -> Call[Nothing]:
    """Delete an agent; its devices get the next agent that is theirs. It is refused if more than `most` have it."""
    return Call("DELETE", f"/agents/{agent}", Nothing, {"most": most})


def publish(agent: int, most: int | None = None) -> Call[AgentVersion]:
    """Make the draft the version that counts; refused if more devices than `most` have the agent."""
    return Call("POST", f"/agents/{agent}:publish", AgentVersion, {} if most is None else {"most": most})


def roll_back(agent: int, number: int, most: int | None = None) -> Call[AgentVersion]:
    """Let an earlier version count again; refused if more devices than `most` have the agent."""
    return Call("POST", f"/agents/{agent}:rollback", AgentVersion, body=Rollback(number=number, most=most))


def preview_change(agent: int, *, deleted: bool = False) -> Call[AgentPreview]:
    """Read which devices have an agent, before another version of it counts or it is deleted."""
    return Call("POST", f"/agents/{agent}:preview", AgentPreview, body=AgentTrial(deleted=deleted))


def versions(agent: int, limit: int = 100) -> Call[ListPage[AgentVersion]]:
    """List the published versions, the newest first."""
    return Call("GET", f"/agents/{agent}/versions", ListPage[AgentVersion], {"limit": limit})


def try_draft(agent: int, text: str) -> Call[TrialAnswer]:
    """Let the model of the draft answer a text."""
    return Call("POST", f"/agents/{agent}:try", TrialAnswer, body=Trial(text=text), seconds=90)


def assign(agent: int, whom: NewAssignment) -> Call[Settled]:
    """Give an agent to a device, a group or the site."""
    return Call("POST", f"/agents/{agent}:assign", Settled, body=whom)


def preview(change: AssignmentTrial) -> Call[AssignmentPreview]:
    """Read which devices an assignment would give another agent."""
    return Call("POST", "/assignments:preview", AssignmentPreview, body=change)


def unassign(whom: NewAssignment) -> Call[Settled]:
    """Take the agent of a device, a group or the site away."""
    return Call("POST", "/assignments:remove", Settled, body=whom)


def assignments(limit: int = 500) -> Call[ListPage[Assignment]]:
    """List who has an agent of his own."""
    return Call("GET", "/assignments", ListPage[Assignment], {"limit": limit})


def compile_all() -> Call[Compiled]:
    """Write all agents and assignments into Redis again."""
    return Call("POST", "/agents:compile", Compiled, seconds=600)

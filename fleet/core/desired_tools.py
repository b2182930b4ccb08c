"""Which calls of boards' tools may be desired."""

from fleet.core.desired_state import SETTERS
from fleet.core.tool_kinds import kind_of
from fleet.core.tool_policy import risk_of


def fault_of_tool(name: str) -> str:
    """Return why a call of a tool cannot be desired; empty if it can."""
    if any(one.tool == name for one in SETTERS.values()):
        return f"{name} sets a property: name that in place of the tool"
    if risk_of(name, "device") == "read" or kind_of(name).leaves or kind_of(name).slow:
        return f"{name} sets nothing that could be desired"
    return ""

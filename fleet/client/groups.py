"""Calls about groups."""

from collections.abc import Sequence

from fleet.client.call import Call, Nothing
from fleet.wire.control.agents import AssignmentPreview
from fleet.wire.control.devices import DevicePage
from fleet.wire.control.groups import Group, GroupAddition, GroupPage, GroupPatch, GroupTrial, MemberChange, MemberMacs
from fleet.wire.control.shapes import USUAL_MOST


def listing(limit: int = 500) -> Call[GroupPage]:
    """List groups."""
    return Call("GET", "/groups", GroupPage, {"limit": limit})


def add(group: GroupAddition) -> Call[Group]:
    """Make a group."""
    return Call("POST", "/groups", Group, body=group)


def read(group: int) -> Call[Group]:
    """Read a group."""
    return Call("GET", f"/groups/{group}", Group)


def change(group: int, patch: GroupPatch) -> Call[Group]:
    """Change a group."""
    return Call("PATCH", f"/groups/{group}", Group, body=patch)


def remove(group: int, most: int = USUAL_MOST) -> Call[Nothing]:
    """Delete a group; its devices stay. It is refused if more devices than `most` get another agent by it."""
    return Call("DELETE", f"/groups/{group}", Nothing, {"most": most})


def preview(group: int, trial: GroupTrial) -> Call[AssignmentPreview]:
    """Read which devices a change of a group would give another agent."""
    return Call("POST", f"/groups/{group}:preview", AssignmentPreview, body=trial)


def members(group: int, query: str = "", limit: int = 500) -> Call[DevicePage]:
    """List the devices of a group."""
    asked = {"limit": limit, "filter": query}
    return Call("GET", f"/groups/{group}/members", DevicePage, {name: value for name, value in asked.items() if value})


def add_members(group: int, macs: Sequence[str], most: int = USUAL_MOST) -> Call[MemberChange]:
    """Add devices to a static group; refused if more than `most` get another agent by it."""
    return Call("POST", f"/groups/{group}/members:add", MemberChange, body=MemberMacs(macs=list(macs), most=most))


def remove_members(group: int, macs: Sequence[str], most: int = USUAL_MOST) -> Call[MemberChange]:
    """Remove devices from a static group; refused if more than `most` get another agent by it."""
    return Call("POST", f"/groups/{group}/members:remove", MemberChange, body=MemberMacs(macs=list(macs), most=most))

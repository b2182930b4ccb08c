"""Calls about groups."""

from collections.abc import Sequence

from fleet.client.call import Call, Nothing
from fleet.wire.control.devices import DevicePage
from fleet.wire.control.groups import Group, GroupAddition, GroupPage, GroupPatch, MemberChange, MemberMacs


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


def remove(group: int) -> Call[Nothing]:
    """Delete a group; its devices stay."""
    return Call("DELETE", f"/groups/{group}", Nothing)


def members(group: int, query: str = "", limit: int = 500) -> Call[DevicePage]:
    """List the devices of a group."""
    asked = {"limit": limit, "filter": query}
    return Call("GET", f"/groups/{group}/members", DevicePage, {name: value for name, value in asked.items() if value})


def add_members(group: int, macs: Sequence[str]) -> Call[MemberChange]:
    """Add devices to a static group."""
    return Call("POST", f"/groups/{group}/members:add", MemberChange, body=MemberMacs(macs=list(macs)))


def remove_members(group: int, macs: Sequence[str]) -> Call[MemberChange]:
    """Remove devices from a static group."""
    return Call("POST", f"/groups/{group}/members:remove", MemberChange, body=MemberMacs(macs=list(macs)))

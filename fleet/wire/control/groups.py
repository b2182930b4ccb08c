"""Groups of devices, as the API of control gives and takes them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from fleet.wire.control.device_texts import Mac, Notes, QueryText
from fleet.wire.control.shapes import USUAL_MOST, MostDevices, Shape

MOST_MACS = 500
"""Devices that one request adds to a group or removes."""


def _plain(name: str) -> str:
    if name != name.strip() or not name.isprintable():
        raise ValueError("a name has printable characters, and no blank at its ends")
    return name


GroupName = Annotated[str, StringConstraints(min_length=1, max_length=63), AfterValidator(_plain)]


class Group(Shape):
    """A group; a dynamic one has a query, a static one has members."""

    id: int
    name: str
    kind: Literal["static", "dynamic"]
    query: str
    notes: str
    version: int


class GroupPage(Shape):
    """A part of the groups. `next` is the cursor of the next part, null at the end."""

    items: list[Group]
    next: str | None = None


class GroupAddition(Shape):
    """A new group. With a query it is dynamic."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "berlin", "query": "tag.site=berlin"}]})

    name: GroupName
    query: QueryText = ""
    notes: Notes = ""


class GroupPatch(Shape):
    """What becomes different of a group. A static group gets no query, and a dynamic one does not lose its own.

    If the group has an agent, `most` bounds how many devices may get another agent by its new query; if the query of a
    group with an agent names it, how many may by its new name.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"notes": "Second floor"}]})

    name: GroupName | None = None
    query: QueryText | None = None
    notes: Notes | None = None
    most: MostDevices = USUAL_MOST


Macs = Annotated[list[Mac], Field(min_length=1, max_length=MOST_MACS)]


class MemberMacs(Shape):
    """Devices by their MACs. If the group has an agent, `most` bounds how many of them may get another agent by it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"macs": ["02:00:00:00:00:01"]}]})

    macs: Macs
    most: MostDevices = USUAL_MOST


class GroupTrial(Shape):
    """A change of a group that is only looked at: one of another `name`, a new `query`, MACs to `add` and to `remove`.

    Without any of them the group is deleted.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "tag.site=berlin"}]})

    name: GroupName | None = None
    query: QueryText | None = None
    add: Macs | None = None
    remove: Macs | None = None


class MemberChange(Shape):
    """How many devices were added or removed, and which are unknown."""

    changed: int
    unknown: list[str]

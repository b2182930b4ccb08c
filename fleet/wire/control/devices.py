"""Devices, as the API of control gives and takes them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, StringConstraints, model_validator

from fleet.wire.control.device_texts import (
    Attributes,
    DeviceState,
    Mac,
    Name,
    Notes,
    Serial,
    TagKey,
    Tags,
    TagValue,
)
from fleet.wire.control.shapes import NUMBER, Shape, Time

FilterText = Annotated[str, Field(max_length=2000, description="A query: docs/reference/queries.md.")]


class Device(Shape):
    """A device. Of `fields=…` only the named fields are there.

    `agent` is the name of the agent that is assigned to the device, else to its groups; empty if only that of the site
    counts.
    """

    mac: str | None = None
    name: str | None = None
    notes: str | None = None
    attributes: dict[str, JsonValue] | None = None
    tags: dict[str, str] | None = None
    agent: str | None = None
    version: int | None = None
    state: DeviceState | None = None
    board: str | None = None
    firmware: str | None = None
    serial: str | None = None
    client: str | None = None
    language: str | None = None
    key: str | None = None
    online: bool | None = None
    first_seen: Time | None = None
    last_seen: Time | None = None
    last_boot: Time | None = None


class DeviceQuery(Shape):
    """Which devices are asked for, and what of them."""

    filter: FilterText = ""
    cursor: Annotated[str, Field(max_length=2_000, description="`next` of the page before.")] = ""
    limit: Annotated[int, Field(ge=1, le=500), NUMBER] = 50
    fields: Annotated[str, Field(max_length=400, description="Fields of each device, with commas between them.")] = ""
    sort: Literal["mac", "name", "last_seen", "-last_seen"] = "mac"
    count: Annotated[bool, Field(description="Whether to count the devices, up to 10,000.")] = False


class FacetQuery(Shape):
    """What is counted."""

    by: Annotated[str, Field(max_length=400, description="Fields such as `board,firmware,online,tag.site`.")] = (
        "board,firmware,online,state"
    )
    filter: FilterText = ""


class DevicePage(Shape):
    """A page of a search. It may be short, and even empty, with a cursor: go on until `next` is null.

    `total` is there with `count=true`; `total_is_least` says that there are more than were counted.
    """

    items: list[Device]
    next: str | None = None
    total: int | None = None
    total_is_least: bool | None = None


class _Written(Shape):
    """What people write about a device."""

    @model_validator(mode="before")
    @classmethod
    def _assigns_no_agent(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and "agent" in value:
            raise ValueError("`agent` follows from assignments: use POST /v1/agents/{agent}:assign")
        return value


class DeviceAddition(_Written):
    """A device that is registered before it is seen."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"mac": "02:00:00:00:00:01", "name": "Kitchen", "tags": {"site": "berlin"}}]}
    )

    mac: Mac
    name: Name = ""
    notes: Notes = ""
    serial: Serial = ""
    attributes: Attributes = Field(default_factory=dict)
    tags: Tags = Field(default_factory=dict)


class DevicePatch(_Written):
    """What becomes different of a device. `tags` and `attributes` replace all that it has."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Kitchen"}]})

    name: Name | None = None
    notes: Notes | None = None
    attributes: Attributes | None = None
    tags: Tags | None = None


class TagPatch(Shape):
    """Tags to set; null removes one. The others stay."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tags": {"site": "berlin", "old": None}}]})

    tags: Annotated[dict[TagKey, TagValue | None], Field(max_length=100)]


class TagList(Shape):
    """All tags of a device."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tags": {"site": "berlin"}}]})

    tags: Tags


class OfferedTool(Shape):
    """A tool of a device: all texts are the device's own. `user_only`: the model never sees it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    risk: Literal["read", "act", "dangerous"]
    user_only: bool


class ToolNames(Shape):
    """The tools that a device offers: by name as the registry has them, and with their schemas as it last said.

    `tools` also has those that its firmware has for users only.
    """

    items: list[str]
    tools: list[OfferedTool] = Field(default_factory=list)


class PresenceMoment(Shape):
    """When a device connected, or its connection ended."""

    at: Time
    online: bool


class PresenceHistory(Shape):
    """Changes of presence, the newest first. `next` is the time before which the next page ends."""

    items: list[PresenceMoment]
    next: Time | None = None


class FieldCounts(Shape):
    """How many devices have each value of a field, the most frequent values first.

    `complete` is false if counting ended early: then these are least numbers.
    """

    field: str
    values: dict[str, int]
    complete: bool


class FacetList(Shape):
    """Counts by several fields."""

    items: list[FieldCounts]


Client = Annotated[str, StringConstraints(max_length=128)]
Code = Annotated[str, StringConstraints(pattern=r"^ *[0-9] *(?:[0-9] *){5}$", max_length=20)]


class BindByCode(Shape):
    """The six digits that a device shows. `now` refuses the passwords of an earlier owner at once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"code": "123456"}]})

    code: Code
    now: bool = False


class BindByMac(Shape):
    """Binds a MAC to a client; without one, to the first client that asks with it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    client: Client = ""
    now: bool = False


class ClaimChoice(Shape):
    """One of the claims of a device; `client` may be its first characters, and is not needed for the only claim."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    client: Client = ""
    now: bool = False


class DebugTime(Shape):
    """For how long a device is logged at the level debug; 0 ends it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"minutes": 10}]})

    minutes: Annotated[float, Field(ge=0, le=24 * 60), NUMBER] = 10.0


class TenantChoice(Shape):
    """To which tenant a device moves, by its slug; `source` is the tenant that it is in, by default one's own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tenant": "default"}]})

    tenant: Annotated[str, StringConstraints(max_length=63)]
    source: Annotated[str, StringConstraints(max_length=63)] | None = None


class DecisionOutcome(Shape):
    """What a decision did: whether something is different now, and what the operator has to do."""

    mac: str
    changed: bool
    note: str = ""


class DeviceClaim(Shape):
    """A client that asks for a MAC of another owner."""

    mac: str
    client: str
    address: str
    count: int
    first: Time
    last: Time


class ClaimList(Shape):
    """Claims that wait for a decision."""

    items: list[DeviceClaim]


class WaitingDevice(Shape):
    """A device that shows a code."""

    mac: str
    code: str


class WaitingList(Shape):
    """Devices that show codes now."""

    items: list[WaitingDevice]


class LineFault(Shape):
    """Why a line of a file was not taken."""

    line: int
    message: str


class ImportReport(Shape):
    """What an import did. `errors` has the first ones; `failed` counts all."""

    added: int
    changed: int
    unchanged: int
    failed: int
    errors: list[LineFault]

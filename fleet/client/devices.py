"""Calls about devices."""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

from fleet.client.call import Call
from fleet.wire.control.device_findings import DeviceFinding
from fleet.wire.control.devices import (
    BindByCode,
    BindByMac,
    ClaimChoice,
    ClaimList,
    DebugTime,
    DecisionOutcome,
    Device,
    DeviceAddition,
    DevicePage,
    DevicePatch,
    FacetList,
    ImportReport,
    PresenceHistory,
    TagPatch,
    TenantChoice,
    ToolNames,
    WaitingList,
)
from fleet.wire.control.shapes import ListPage


def search(
    query: str = "", *, limit: int = 500, sort: str = "mac", fields: str = "", count: bool = False
) -> Call[DevicePage]:
    """Search devices. A page may be short and have a next one."""
    asked = {"filter": query, "limit": limit, "sort": sort, "fields": fields, "count": "true" if count else ""}
    return Call("GET", "/devices", DevicePage, {name: value for name, value in asked.items() if value})


def counts(by: str, query: str = "") -> Call[FacetList]:
    """Count devices by fields, such as `board,online,tag.site`."""
    return Call("GET", "/devices:counts", FacetList, {"by": by, "filter": query})


def register(device: DeviceAddition) -> Call[Device]:
    """Register a device before it is seen."""
    return Call("POST", "/devices", Device, body=device)


def read(mac: str) -> Call[Device]:
    """Read a device."""
    return Call("GET", _path(mac), Device)


def change(mac: str, patch: DevicePatch) -> Call[Device]:
    """Change what people write about a device."""
    return Call("PATCH", _path(mac), Device, body=patch)


def tag(mac: str, tags: Mapping[str, str | None]) -> Call[Device]:
    """Set tags of a device, or remove those that are None."""
    return Call("PATCH", f"{_path(mac)}/tags", Device, body=TagPatch(tags=dict(tags)))


def tools(mac: str) -> Call[ToolNames]:
    """Read the names of the tools that a device offers."""
    return Call("GET", f"{_path(mac)}/tools", ToolNames)


def findings(mac: str) -> Call[ListPage[DeviceFinding]]:
    """Read what the doctor finds about a device."""
    return Call("GET", f"{_path(mac)}/findings", ListPage[DeviceFinding])


def presence(mac: str, limit: int = 100) -> Call[PresenceHistory]:
    """Read when a device connected and disconnected."""
    return Call("GET", f"{_path(mac)}/presence", PresenceHistory, {"limit": limit})


def waiting() -> Call[WaitingList]:
    """List the devices that show a code."""
    return Call("GET", "/devices:waiting", WaitingList)


def claims(mac: str = "") -> Call[ClaimList]:
    """List clients that ask for a MAC of another owner: of one device, or of all."""
    return Call("GET", f"{_path(mac)}/claims" if mac else "/devices:claims", ClaimList)


def bind_code(code: str, *, now: bool = False) -> Call[DecisionOutcome]:
    """Bind the device that shows a code."""
    return Call("POST", "/devices:bind", DecisionOutcome, body=BindByCode(code=code, now=now))


def bind(mac: str, client: str = "", *, now: bool = False) -> Call[DecisionOutcome]:
    """Bind a MAC to a client, or to the first one that asks with it."""
    return _decide(mac, "bind", BindByMac(client=client, now=now))


def accept(mac: str, client: str = "", *, now: bool = False) -> Call[DecisionOutcome]:
    """Accept a claim."""
    return _decide(mac, "accept", ClaimChoice(client=client, now=now))


def refuse(mac: str, client: str = "") -> Call[DecisionOutcome]:
    """Refuse a claim."""
    return _decide(mac, "refuse", ClaimChoice(client=client))


def decide(mac: str, verb: Literal["unbind", "revoke", "unrevoke", "forget"]) -> Call[DecisionOutcome]:
    """Decide about a device without further words."""
    return _decide(mac, verb)


def debug(mac: str, minutes: float) -> Call[DecisionOutcome]:
    """Log a device at the level debug for some minutes; 0 ends it."""
    return _decide(mac, "debug", DebugTime(minutes=minutes))


def move(mac: str, tenant: str, source: str | None = None) -> Call[DecisionOutcome]:
    """Give a device to another tenant."""
    return _decide(mac, "move", TenantChoice(tenant=tenant, source=source))


def import_file(*, dry_run: bool = False) -> Call[ImportReport]:
    """Register and change the devices of a file, which `upload` sends; or read what that would do."""
    return Call("POST", "/devices:import", ImportReport, {"dry_run": "true"} if dry_run else {})


def _decide(mac: str, verb: str, body: Any = None) -> Call[DecisionOutcome]:
    return Call("POST", f"{_path(mac)}:{verb}", DecisionOutcome, body=body)


def _path(mac: str) -> str:
    return f"/devices/{quote(mac, safe=':')}"

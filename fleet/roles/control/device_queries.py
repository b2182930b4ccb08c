"""Queries for devices in requests, and devices in answers."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from fleet.adapters.sql.device_rows import RegisteredDevice
from fleet.adapters.sql.device_search import CursorError, DeviceSearch, FoundDevices
from fleet.core.query.conditions import Condition, QueryError, names_field
from fleet.core.query.fields import DEVICE_FIELDS
from fleet.core.query.parser import parse
from fleet.roles.control.access import Principal
from fleet.roles.control.cursors import Cursors
from fleet.roles.control.problems import Problem, not_found
from fleet.wire.control.devices import Device, DeviceQuery
from fleet.wire.topics import canonical_mac

FIELDS = tuple(Device.model_fields)
_TIMES = ("first_seen", "last_seen", "last_boot")


def read_query(text: str) -> Condition:
    """Return the condition of a query.

    Raises:
        Problem: It cannot be read (400); `errors` has the position.
    """
    try:
        if "\0" in text:
            raise QueryError("the character 0 is not allowed", text.index("\0"))
        return parse(text, DEVICE_FIELDS, datetime.now(UTC))
    except QueryError as error:
        fault = {"at": "filter", "position": error.position, "message": str(error)}
        detail = f"filter, at character {error.position}: {error}"
        raise Problem(400, "bad-filter", detail, errors=[fault]) from error


def check_agentless(text: str) -> None:
    """Check the query of a group that has an agent.

    Raises:
        Problem: It names the agent (409): devices would leave the group as soon as they had the group's agent.
    """
    if names_field(read_query(text), "agent"):
        raise Problem(409, "names-agent", "a group whose query names `agent` has no agent itself")


def read_mac(text: str) -> str:
    """Return the canonical MAC of a path.

    Raises:
        Problem: It is none (404).
    """
    mac = canonical_mac(text[:40])
    if mac is None:
        raise not_found("device")
    return mac


def read_fields(text: str) -> Sequence[str]:
    """Return the fields that an answer is to have, by default all.

    Raises:
        Problem: There is no such field (400).
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in FIELDS]
    if unknown:
        raise Problem(400, "bad-fields", f"there is no field {unknown[0][:60]!r}; fields are {', '.join(FIELDS)}")
    return names or FIELDS


def device_json(device: RegisteredDevice, fields: Sequence[str] = FIELDS) -> dict[str, Any]:
    """Return some fields of a device as JSON has them."""
    return {name: _time(getattr(device, name)) if name in _TIMES else getattr(device, name) for name in fields}


def shape_of(device: RegisteredDevice) -> Device:
    """Return a whole device as an answer."""
    return Device.model_validate(device_json(device))


async def page_of(
    search: DeviceSearch, condition: Condition, query: DeviceQuery, cursors: Cursors, who: Principal
) -> FoundDevices:
    """Return a page of a search; its cursor is signed.

    Raises:
        Problem: Its cursor is not one of this search (400).
    """
    place = cursors.read(who, "devices", query.cursor)
    cursor = str(place[0]) if place else ""
    try:
        page = await search.page(condition, sort=query.sort, cursor=cursor, limit=query.limit)
    except CursorError as error:
        raise Problem(400, "bad-cursor", str(error)) from error
    return FoundDevices(page.devices, cursors.write(who, "devices", [page.cursor]) if page.cursor else "")


def _time(at: int) -> str | None:
    """Return a time as `fleet.wire.control.shapes.Time` writes it: thousands of them are written at once."""
    if not at:
        return None
    return f"{datetime.fromtimestamp(at // 1000, UTC).isoformat()[:19]}.{at % 1000:03}Z"

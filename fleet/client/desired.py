"""Calls about desired states of devices."""

from urllib.parse import quote

from fleet.client.call import Call
from fleet.wire.control.desired import DesiredDocument, DesiredPatch
from fleet.wire.control.shapes import ListPage

DriftPage = ListPage[DesiredDocument]


def read(mac: str) -> Call[DesiredDocument]:
    """Read what a device should be set to, what it reports, and what became of each property."""
    return Call("GET", _path(mac), DesiredDocument)


def change(mac: str, patch: DesiredPatch) -> Call[DesiredDocument]:
    """Change what a device should be set to."""
    return Call("PATCH", _path(mac), DesiredDocument, body=patch)


def drift(limit: int = 500) -> Call[DriftPage]:
    """List the devices that report another value than they should."""
    return Call("GET", "/devices:drift", DriftPage, {"limit": limit})


def _path(mac: str) -> str:
    return f"/devices/{quote(mac, safe=':')}/desired"

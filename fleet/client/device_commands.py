"""Calls about commands that wait for a device."""

from urllib.parse import quote

from fleet.client.call import Call
from fleet.wire.control.device_commands import DeviceCommandRequest, DeviceCommandState
from fleet.wire.control.shapes import ListPage

CommandPage = ListPage[DeviceCommandState]


def listing(mac: str) -> Call[CommandPage]:
    """List the newest commands of a device."""
    return Call("GET", _path(mac), CommandPage)


def create(mac: str, request: DeviceCommandRequest) -> Call[DeviceCommandState]:
    """Call a tool as soon as the device is there."""
    return Call("POST", _path(mac), DeviceCommandState, body=request)


def read(mac: str, command: int) -> Call[DeviceCommandState]:
    """Read a command."""
    return Call("GET", f"{_path(mac)}/{command}", DeviceCommandState)


def cancel(mac: str, command: int) -> Call[DeviceCommandState]:
    """Give a command up that was not sent."""
    return Call("POST", f"{_path(mac)}/{command}:cancel", DeviceCommandState)


def _path(mac: str) -> str:
    return f"/devices/{quote(mac, safe='')}/commands"

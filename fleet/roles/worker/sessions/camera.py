"""The upload address and token of a device's camera."""

from datetime import UTC, datetime

from fleet.adapters.redis.devices.devices import DeviceRecord
from fleet.ground.errors import Unavailable
from fleet.roles.worker.resources import WorkerResources
from fleet.wire import camera
from fleet.wire.messages import InitializeCommand

_PATH = "/vision/explain"


async def initialize_command(resources: WorkerResources, mac: str, number: int) -> InitializeCommand:
    """Return the MCP `initialize` request, with a fresh token for the device's camera.

    A device accepts it at any time: sent before a photo, it replaces a token that may have expired.

    Args:
        resources: Of the worker.
        mac: The device.
        number: Id of the request.
    """
    device = await _read_device(resources, mac)
    url = _address(resources, device)
    if url is None:
        return InitializeCommand(number)
    generation = device.connected.generation if device is not None and device.connected is not None else None
    token = camera.issue(resources.keys, mac, datetime.now(UTC).timestamp(), generation)
    return InitializeCommand(number, vision_url=f"{url}{_PATH}", vision_token=token)


async def _read_device(resources: WorkerResources, mac: str) -> DeviceRecord | None:
    try:
        return await resources.devices.read(mac)
    except Unavailable:
        return None


def _address(resources: WorkerResources, device: DeviceRecord | None) -> str | None:
    """Return the api's address for devices, None if it is unknown."""
    settings = resources.settings
    if settings.http_public is not None:
        return settings.http_public
    host = settings.public_host or (device.host if device is not None else "")
    tls = settings.tls_cert is not None
    scheme, port = ("https", settings.https_port) if tls else ("http", settings.http_port)
    return f"{scheme}://{host}:{port}" if host and port else None

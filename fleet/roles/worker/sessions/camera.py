"""The upload address and token of a device's camera."""

from datetime import UTC, datetime

from fleet.adapters.redis.devices.devices import DeviceRecord
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.settings import WorkerSettings
from fleet.wire import camera
from fleet.wire.messages import InitializeCommand

_PATH = "/vision/explain"


def initialize_command(resources: WorkerResources, device: DeviceRecord, number: int) -> InitializeCommand:
    """Return the MCP `initialize` request, with a fresh token for the device's camera.

    A device accepts it at any time: sent before a photo, it replaces a token that may have expired.

    Args:
        resources: Of the worker.
        device: The device.
        number: Id of the request.
    """
    url = address_for(resources.settings, device)
    if url is None:
        return InitializeCommand(number)
    generation = device.connected.generation if device.connected is not None else None
    token = camera.issue(resources.keys, device.mac, datetime.now(UTC).timestamp(), generation)
    return InitializeCommand(number, vision_url=f"{url}{_PATH}", vision_token=token)


def address_for(settings: WorkerSettings, device: DeviceRecord) -> str | None:
    """Return the api's address for devices, None if it is unknown."""
    if settings.http_public is not None:
        return settings.http_public
    host = settings.public_host or device.host
    tls = settings.tls_cert is not None
    scheme, port = ("https", settings.https_port) if tls else ("http", settings.http_port)
    return f"{scheme}://{host}:{port}" if host and port else None

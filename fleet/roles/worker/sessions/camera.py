"""The upload address and token of a device's camera."""

from datetime import UTC, datetime

from fleet.adapters.redis.devices.devices import DeviceRecord
from fleet.core.api_address import api_address
from fleet.roles.worker.resources import WorkerResources
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
    url = api_address(resources.settings, device.host)
    if url is None:
        return InitializeCommand(number)
    generation = device.connected.generation if device.connected is not None else None
    token = camera.issue(resources.keys, device.mac, datetime.now(UTC).timestamp(), generation)
    return InitializeCommand(number, vision_url=f"{url}{_PATH}", vision_token=token)

"""What a dialect is: two pure functions over the shared vocabulary."""

from typing import Protocol

from fleet.wire.messages import DeviceCommand, DeviceEvent


class Dialect(Protocol):
    """How a kind of device speaks JSON; one file a dialect."""

    @property
    def name(self) -> str:
        """The name under which a device's record remembers its dialect."""

    def receive(self, frame: bytes) -> DeviceEvent:
        """Return what a frame says; `Malformed` for whatever cannot be understood. Never raises."""

    def send(self, order: DeviceCommand) -> bytes:
        """Return the frame that tells the device an order; empty where this dialect has no words for it."""

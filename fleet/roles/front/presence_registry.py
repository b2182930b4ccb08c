"""The connected devices and their announced presence, without IO."""

from collections.abc import Callable
from dataclasses import dataclass

from fleet.roles.front.gate import Announcement
from fleet.roles.front.presence import Epochs, compose
from fleet.roles.front.proxied_connection import SILENT, ProxiedConnection


@dataclass(frozen=True, slots=True)
class ConnectedDevice:
    """One connection of a device; `epoch` rises with each connection, `username` comes from its CONNECT."""

    mac: str
    epoch: int
    connection: ProxiedConnection
    username: str = ""

    def announcement(self, ip: str) -> Announcement:
        """Return the presence messages for its connection to the broker; `ip` is the device's address."""
        return Announcement(compose(self.epoch, online=True, ip=ip, user=self.username), self.absence())

    def absence(self) -> bytes:
        """Return the presence message for its end."""
        return compose(self.epoch, online=False, expired=self.connection.reason == SILENT)


class PresenceRegistry:
    """Holds at most one connection of each device: a new connection replaces the old one, without an `offline`.

    A device's `online` is published on its own connection to the broker, its `offline` on the front's, because the
    device's own connection may be lost.

    Args:
        announce: Publishes a device's presence on the front's connection.
    """

    def __init__(self, announce: Callable[[str, bytes], None]) -> None:
        self._announce = announce
        self._epochs = Epochs()
        self._connected: dict[str, ConnectedDevice] = {}
        self._announced: set[str] = set()

    def add(
        self, mac: str, connection: ProxiedConnection, now_us: int, username: str = ""
    ) -> tuple[ConnectedDevice, ConnectedDevice | None]:
        """Add a device; return it and its older connection, which the caller ends."""
        old, device = self._connected.get(mac), ConnectedDevice(mac, self._epochs.next(now_us), connection, username)
        self._connected[mac] = device
        return device, old

    def find(self, mac: str) -> ConnectedDevice | None:
        """Return a device, None if it is not connected."""
        return self._connected.get(mac)

    def connected(self) -> list[ConnectedDevice]:
        """Return all devices that are connected."""
        return list(self._connected.values())

    def mark_announced(self, device: ConnectedDevice) -> None:
        """Note that `online` may have reached the broker, so that `offline` must follow."""
        if device.mac in self._connected:
            self._announced.add(device.mac)

    def remove(self, device: ConnectedDevice) -> None:
        """Remove a device; publish `offline` if `online` was announced, even by an earlier connection."""
        if self._connected.get(device.mac) is not device:
            return
        del self._connected[device.mac]
        if device.mac in self._announced:
            self._announced.discard(device.mac)
            self._announce(device.mac, device.absence())

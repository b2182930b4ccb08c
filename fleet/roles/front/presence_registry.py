"""Which devices are connected, and which presence is announced; decided without IO."""

from collections.abc import Callable
from dataclasses import dataclass

from fleet.roles.front.gate import Announcement
from fleet.roles.front.presence import Epochs, compose
from fleet.roles.front.proxied_connection import SILENT, ProxiedConnection


@dataclass(frozen=True, slots=True)
class ConnectedDevice:
    """One connection of a device; `epoch` rises with each, `username` is the one of its CONNECT."""

    mac: str
    epoch: int
    connection: ProxiedConnection
    username: str = ""

    def announcement(self, ip: str) -> Announcement:
        """Return the presence messages of its connection to the broker; `ip` is the device's address."""
        return Announcement(compose(self.epoch, online=True, ip=ip, user=self.username), self.absence())

    def absence(self) -> bytes:
        """Return the presence message with which it ends."""
        return compose(self.epoch, online=False, expired=self.connection.reason == SILENT)


class PresenceRegistry:
    """At most one connection a device: one that connects again has lost the old one, which ends unannounced.

    A device's online is published on its own connection to the broker, its offline on the front's: the device's own
    connection may be the one that was lost.

    Args:
        announce: Publishes a device's presence on the front's connection.
    """

    def __init__(self, announce: Callable[[str, bytes], None]) -> None:
        self._announce = announce
        self._epochs = Epochs()
        self._here: dict[str, ConnectedDevice] = {}
        self._announced: set[str] = set()

    def enter(
        self, mac: str, connection: ProxiedConnection, now_us: int, username: str = ""
    ) -> tuple[ConnectedDevice, ConnectedDevice | None]:
        """Add a device; return it and its older connection, which is to be ended."""
        old, device = self._here.get(mac), ConnectedDevice(mac, self._epochs.next(now_us), connection, username)
        self._here[mac] = device
        return device, old

    def find(self, mac: str) -> ConnectedDevice | None:
        """Return a device, None while it is not connected."""
        return self._here.get(mac)

    def connected(self) -> list[ConnectedDevice]:
        """Return all devices that are connected."""
        return list(self._here.values())

    def confirm(self, device: ConnectedDevice) -> None:
        """Note that the broker may know the device as online, so that its absence is announced."""
        if device.mac in self._here:
            self._announced.add(device.mac)

    def leave(self, device: ConnectedDevice) -> None:
        """Remove a device; announce its offline if its online was announced, even by an earlier connection."""
        if self._here.get(device.mac) is not device:
            return
        del self._here[device.mac]
        if device.mac in self._announced:
            self._announced.discard(device.mac)
            self._announce(device.mac, device.absence())

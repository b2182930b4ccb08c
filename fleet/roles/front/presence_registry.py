"""Which devices are here, and what the workers are told about it; decided without IO."""

from collections.abc import Callable
from dataclasses import dataclass

from fleet.roles.front.gate import Announcement
from fleet.roles.front.presence import Epochs, compose
from fleet.roles.front.proxied_connection import SILENT, ProxiedConnection


@dataclass(frozen=True, slots=True)
class ConnectedDevice:
    """One device's time in the front; `epoch` tells it from those before and after, `username` says who connected."""

    mac: str
    epoch: int
    passage: ProxiedConnection
    username: str = ""

    def announcement(self, ip: str) -> Announcement:
        """Return the presence messages of its connection to the broker; `ip` is the device's address."""
        return Announcement(compose(self.epoch, online=True, ip=ip, user=self.username), self.absence())

    def absence(self) -> bytes:
        """Return the presence message with which it ends."""
        return compose(self.epoch, online=False, expired=self.passage.reason == SILENT)


class PresenceRegistry:
    """At most one stay a device: who comes again has a dead connection behind it, and the old stay ends unannounced.

    That a device is online is told on its own connection to the broker, that it is gone on the front's: its own may be
    what was lost.

    Args:
        announce: Publishes a device's presence on the front's connection.
    """

    def __init__(self, announce: Callable[[str, bytes], None]) -> None:
        self._announce = announce
        self._epochs = Epochs()
        self._here: dict[str, ConnectedDevice] = {}
        self._announced: set[str] = set()

    def enter(
        self, mac: str, passage: ProxiedConnection, now_us: int, username: str = ""
    ) -> tuple[ConnectedDevice, ConnectedDevice | None]:
        """Begin a stay; return it and the one that it replaces, which is to be ended."""
        old, stay = self._here.get(mac), ConnectedDevice(mac, self._epochs.next(now_us), passage, username)
        self._here[mac] = stay
        return stay, old

    def find(self, mac: str) -> ConnectedDevice | None:
        """Return a device's stay, None while it is not here."""
        return self._here.get(mac)

    def stays(self) -> list[ConnectedDevice]:
        """Return the stays of all devices that are here."""
        return list(self._here.values())

    def confirm(self, stay: ConnectedDevice) -> None:
        """Note that the broker may know the device as online, so that its absence is announced."""
        if stay.mac in self._here:
            self._announced.add(stay.mac)

    def leave(self, stay: ConnectedDevice) -> None:
        """End a stay; the device is announced as gone if it was announced, even by an earlier stay."""
        if self._here.get(stay.mac) is not stay:
            return
        del self._here[stay.mac]
        if stay.mac in self._announced:
            self._announced.discard(stay.mac)
            self._announce(stay.mac, stay.absence())

"""Presence messages and their outbox, without IO."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from fleet.wire.topics import presence_topic

WINDOW: Final = 50
"""Messages sent and not yet acknowledged; after a lost connection they are sent again."""


def compose(epoch: int, *, online: bool, ip: str = "", user: str = "", expired: bool = False) -> bytes:
    """Return a presence message; `ip` is the device's address, `user` its user name.

    Both go only with `online`, `expired` only without.
    """
    message: dict[str, object] = {"online": online, "epoch": epoch}
    if online and ip:
        message["ip"] = ip
    if online and user:
        message["user"] = user
    if expired and not online:
        message["expired"] = True
    return msgspec.json.encode(message)


class Epochs:
    """Returns numbers below 2**53 that rise within a process, and across processes if their clocks agree.

    A number is the time of the connection, not a count since the start of the process: a device may reconnect through a
    front that started earlier.
    """

    def __init__(self) -> None:
        self._last = 0

    def next(self, now_us: int) -> int:
        """Return the next number; `now_us` is in microseconds since 1970."""
        self._last = max(self._last + 1, now_us)
        return self._last


class PresenceOutbox:
    """The latest presence of each device that the broker has not acknowledged yet.

    Args:
        limit: Devices that may wait; beyond it the oldest message is dropped and counted.
        counts: Count dropped messages.
    """

    def __init__(self, limit: int, counts: Counter[str]) -> None:
        self._limit = limit
        self._counts = counts
        self._waiting: dict[str, bytes] = {}
        self._sent: dict[int, tuple[str, bytes]] = {}
        self._last_id = 0

    def put(self, mac: str, message: bytes) -> None:
        """Queue a device's newest presence; it replaces an older one that still waits."""
        self._waiting.pop(mac, None)
        self._waiting[mac] = message
        if len(self._waiting) > self._limit:
            self._waiting.pop(next(iter(self._waiting)))
            self._counts["presence lost"] += 1

    def take(self) -> Iterator[tuple[str, bytes, int]]:
        """Yield topic, message and packet id of the messages that may be sent now, in order."""
        while self._waiting and len(self._sent) < WINDOW:
            mac = next(iter(self._waiting))
            message = self._waiting.pop(mac)
            packet_id = self._free_id()
            self._sent[packet_id] = (mac, message)
            yield presence_topic(mac), message, packet_id

    def acknowledge(self, packet_id: int) -> None:
        self._sent.pop(packet_id, None)

    def rewind(self) -> None:
        """Queue unacknowledged messages again, before all others, unless a newer one of the device waits."""
        unacknowledged = {mac: message for mac, message in self._sent.values() if mac not in self._waiting}
        self._sent.clear()
        self._waiting = {**unacknowledged, **self._waiting}

    def _free_id(self) -> int:
        self._last_id = self._last_id % 0xFFFF + 1
        while self._last_id in self._sent:
            self._last_id = self._last_id % 0xFFFF + 1
        return self._last_id

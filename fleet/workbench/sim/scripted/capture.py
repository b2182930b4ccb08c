"""The datagrams that a scripted device got, and waiting for them."""

from dataclasses import dataclass

from fleet.workbench.sim.connection.udp_socket import Address
from fleet.workbench.sim.records.change_signal import ChangeSignal

MOST = 20_000
"""Datagrams kept: twenty minutes of speech."""


@dataclass(frozen=True, slots=True)
class Datagram:
    """One datagram from the server, `payload` decrypted, header fields as they stand.

    `at` is its arrival on the clock, `port` the local port that it came to, `epoch` how many hellos the device
    had taken by then.
    """

    at: float
    raw: bytes
    payload: bytes = b""
    source: Address = ("", 0)
    port: int = 0
    epoch: int = 1

    @property
    def kind(self) -> int:
        return self.raw[0] if self.raw else -1

    @property
    def flags(self) -> int:
        return self.raw[1]

    @property
    def length(self) -> int:
        return int.from_bytes(self.raw[2:4])

    @property
    def ssrc(self) -> int:
        return int.from_bytes(self.raw[4:8])

    @property
    def timestamp(self) -> int:
        return int.from_bytes(self.raw[8:12])

    @property
    def sequence(self) -> int:
        return int.from_bytes(self.raw[12:16])


class Capture:
    """All datagrams of one channel, in order of arrival."""

    def __init__(self) -> None:
        self.datagrams: list[Datagram] = []
        self._signal = ChangeSignal()

    def add(self, datagram: Datagram) -> None:
        if len(self.datagrams) < MOST:
            self.datagrams.append(datagram)
            self._signal.notify()

    async def expect(self, count: int = 1, *, seconds: float, after: float = 0.0) -> list[Datagram]:
        """Wait until so many datagrams came later than `after`; return all of them, fewer when time is up."""
        await self._signal.within(seconds, lambda: len(self.since(after)) >= count)
        return self.since(after)

    def since(self, after: float) -> list[Datagram]:
        return [datagram for datagram in self.datagrams if datagram.at > after]

    def between(self, after: float, until: float) -> list[Datagram]:
        """Return what came later than `after`, up to `until`."""
        return [datagram for datagram in self.datagrams if after < datagram.at <= until]

"""Downlink datagrams: judged as they come from the server, then taken or dropped as firmware does (contract 4.1)."""

from collections.abc import Callable

from fleet.workbench.sim.connection.datagram import HEADER, Cryptor, SocketSlots
from fleet.workbench.sim.connection.downlink_audit import DownlinkAudit
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.loop_lag import LoopLag

_MAILBOX_SPAN = 0.1


class Downlink:
    """The receiving side of a channel.

    Args:
        profile: Which build this is.
        journal: Takes counters and breaches.
        loop_lag: Says whether this process was held up, so that the socket's few slots cannot be judged.
        accepted: Given the payload and the timestamp of every accepted datagram.
    """

    def __init__(
        self, profile: Profile, journal: Journal, loop_lag: LoopLag, accepted: Callable[[bytes, int], None]
    ) -> None:
        self._profile = profile
        self._journal = journal
        self._loop_lag = loop_lag
        self._accepted = accepted
        self._slots = SocketSlots(profile.socket_slots)
        self._witness: DownlinkAudit | None = None
        self.cryptor: Cryptor | None = None

    def use(self, cryptor: Cryptor) -> None:
        """Begin anew with the keys of a hello."""
        self.cryptor = cryptor
        self._witness = DownlinkAudit(cryptor.keystream, aec=self._profile.aec)

    def arrive(self, datagram: bytes) -> bool:
        """Judge a datagram as it comes from the server; return whether the socket could take it."""
        now = self._journal.clock()
        self._journal.count("downlink_received")
        if not self._slots.admit(now) and not self._loop_lag.stalled_since(now - _MAILBOX_SPAN):
            self._journal.count("downlink_dropped_mailbox")
            self._journal.violate("mailbox-overflow", f"more than {self._profile.socket_slots} datagrams within 5 ms")
            return False
        if self._witness:
            self._journal.judge(self._witness.check(datagram))
        return True

    def receive(self, datagram: bytes) -> None:
        """Take a datagram as the device gets it."""
        if self.cryptor is None:
            return
        if refusal := self.cryptor.refuse(datagram):
            self._journal.count(f"downlink_refused_{refusal}")
            return
        payload, skipped = self.cryptor.decrypt(datagram)
        self._journal.count("downlink_accepted")
        self._journal.count("downlink_skipped", skipped)
        self._accepted(payload, int.from_bytes(datagram[8 : HEADER - 4], "big"))

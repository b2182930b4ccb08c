"""Route datagrams to their sessions."""

from collections import Counter
from collections.abc import Iterable

from fleet.roles.edge.registry import SessionRegistry
from fleet.roles.edge.session import EdgeSession
from fleet.roles.edge.transport.datagrams import Address, Batch
from fleet.roles.edge.transport.early_packets import EarlyPacketBuffer
from fleet.wire import packet


class PacketRouter:
    """Passes packets to their sessions; packets that come before their session wait for it.

    Args:
        registry: The edge's sessions.
        counters: Count drops by reason.
    """

    def __init__(self, registry: SessionRegistry, counters: Counter[str]) -> None:
        self._registry = registry
        self._counters = counters
        self._early = EarlyPacketBuffer(counters)

    def take(self, batches: Iterable[Batch], now: float) -> None:
        """Take what came to the socket."""
        sessions = self._registry.by_ssrc
        for usual, others in batches:
            for ssrc, sequence, timestamp, payload in usual:
                if session := sessions.get(ssrc):
                    session.receive_admitted(sequence, timestamp, payload, now)
            for datagram, address in others:
                self.receive(datagram, address, now)

    def receive(self, datagram: bytes, address: Address, now: float) -> None:
        """Take a datagram."""
        header = packet.parse(datagram)
        if header is None:
            self._counters["too_short" if len(datagram) < packet.HEADER else "malformed"] += 1
        elif session := self._registry.by_ssrc.get(header.ssrc):
            session.receive(header, datagram, address, now)
        else:
            self._early.keep(header.ssrc, datagram, address, now)

    def admit(self, session: EdgeSession, now: float) -> None:
        """Pass the packets that waited for a session which has opened."""
        for datagram, address, _ in self._early.claim(session.opened.ssrc, now):
            self.receive(datagram, address, now)

    def expire(self, now: float) -> None:
        """Forget packets whose session has not come."""
        self._early.expire(now)

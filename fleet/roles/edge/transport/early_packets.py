"""Keep packets that came before their session: UDP may be faster than the edge's inbox."""

from collections import Counter, deque

from fleet.roles.edge.transport.socket import Address

MOST_SENDERS = 1024
"""Unknown ssrcs at a time. The oldest is removed first, so that an attacker who guesses ssrcs keeps no device out."""
MOST_PACKETS = 64
"""Packets of one unknown ssrc."""
MOST_WAITING = 2048
"""Packets of all unknown ssrcs, at most 2 KB each."""
LONGEST_WAIT = 2.0
"""Seconds."""

Waiting = tuple[bytes, Address, float]


class EarlyPacketBuffer:
    """Keeps a few packets of a few unknown ssrcs for a short time.

    Args:
        drops: Count packets that are dropped.
    """

    def __init__(self, drops: Counter[str]) -> None:
        self._drops = drops
        self._packets: dict[int, deque[Waiting]] = {}
        """By ssrc, the oldest first."""
        self._waiting = 0

    def keep(self, ssrc: int, datagram: bytes, address: Address, now: float) -> None:
        """Keep one packet, unless too many of this ssrc wait already."""
        kept = self._packets.get(ssrc)
        if kept is not None and len(kept) >= MOST_PACKETS:
            self._drop(1)
            return
        while self._packets and (
            self._waiting >= MOST_WAITING or (kept is None and len(self._packets) >= MOST_SENDERS)
        ):
            self._forget(next(iter(self._packets)))
        self._packets.setdefault(ssrc, deque()).append((datagram, address, now))
        self._waiting += 1

    def claim(self, ssrc: int, now: float) -> list[Waiting]:
        """Return and forget the packets of a session that has opened."""
        kept = self._packets.pop(ssrc, ())
        self._waiting -= len(kept)
        claimed = [waiting for waiting in kept if now - waiting[2] <= LONGEST_WAIT]
        if len(claimed) < len(kept):
            self._drop(len(kept) - len(claimed))
        return claimed

    def expire(self, now: float) -> None:
        """Forget every ssrc whose first packet has waited too long."""
        for ssrc in [ssrc for ssrc, kept in self._packets.items() if now - kept[0][2] > LONGEST_WAIT]:
            self._forget(ssrc)

    def _forget(self, ssrc: int) -> None:
        forgotten = len(self._packets.pop(ssrc))
        self._waiting -= forgotten
        self._drop(forgotten)

    def _drop(self, packets: int) -> None:
        self._drops["unknown_ssrc"] += packets

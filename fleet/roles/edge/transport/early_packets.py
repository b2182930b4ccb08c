"""Keep packets that came before their session: UDP may be faster than the edge's inbox."""

from collections import Counter, deque

from fleet.roles.edge.transport.socket import Address

MOST_SENDERS = 1024
"""Pairs of an unknown ssrc and an address at a time."""
MOST_PACKETS = 64
"""Packets of one of them."""
MOST_WAITING = 2048
"""Packets of all of them, at most 2 KB each."""
LONGEST_WAIT = 2.0
"""Seconds."""

Waiting = tuple[bytes, Address, float]


class EarlyPacketBuffer:
    """Keeps a few packets of a few unknown senders for a short time.

    Each address has its own place for an ssrc, so nobody fills that of a device. Where there are too many places or
    packets, the oldest place is emptied. So a flood from many addresses, or with many ssrcs, can cost a device the
    packets that it sent before its session opened, and nothing more.

    Args:
        drops: Count packets that are dropped.
    """

    def __init__(self, drops: Counter[str]) -> None:
        self._drops = drops
        self._packets: dict[tuple[int, Address], deque[Waiting]] = {}
        """By ssrc and address, the oldest first."""
        self._waiting = 0

    def keep(self, ssrc: int, datagram: bytes, address: Address, now: float) -> None:
        """Keep one packet, unless too many of this ssrc and address wait already."""
        kept = self._packets.get((ssrc, address))
        if kept is not None and len(kept) >= MOST_PACKETS:
            self._drop(1)
            return
        while self._packets and (
            self._waiting >= MOST_WAITING or (kept is None and len(self._packets) >= MOST_SENDERS)
        ):
            self._forget(next(iter(self._packets)))
        self._packets.setdefault((ssrc, address), deque()).append((datagram, address, now))
        self._waiting += 1

    def claim(self, ssrc: int, now: float) -> list[Waiting]:
        """Return and forget the packets of a session that has opened, in the order in which they came."""
        if not self._packets:
            return []
        kept = [one for sender in list(self._packets) if sender[0] == ssrc for one in self._packets.pop(sender)]
        self._waiting -= len(kept)
        claimed = [waiting for waiting in kept if now - waiting[2] <= LONGEST_WAIT]
        if len(claimed) < len(kept):
            self._drop(len(kept) - len(claimed))
        return sorted(claimed, key=lambda waiting: waiting[2])

    def expire(self, now: float) -> None:
        """Forget every sender whose first packet has waited too long."""
        for sender in [sender for sender, kept in self._packets.items() if now - kept[0][2] > LONGEST_WAIT]:
            self._forget(sender)

    def _forget(self, sender: tuple[int, Address]) -> None:
        forgotten = len(self._packets.pop(sender))
        self._waiting -= forgotten
        self._drop(forgotten)

    def _drop(self, packets: int) -> None:
        self._drops["unknown_ssrc"] += packets

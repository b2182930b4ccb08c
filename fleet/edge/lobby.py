"""Packets that came before their session: a device may be faster than a mailbox."""

from collections import Counter, deque

from fleet.edge.socket import Address

MOST_SENDERS = 16
MOST_PACKETS = 64
LONGEST_WAIT = 2.0
"""Seconds."""

Waiting = tuple[bytes, Address, float]


class Lobby:
    """Keeps a few packets of a few unknown ssrcs for a short time.

    Args:
        drops: Counts those that nobody claimed.
    """

    def __init__(self, drops: Counter[str]) -> None:
        self._drops = drops
        self._packets: dict[int, deque[Waiting]] = {}

    def keep(self, ssrc: int, datagram: bytes, address: Address, now: float) -> None:
        """Keep one packet; drop it when there is no room (an unknown ssrc more, or too many packets of this)."""
        if ssrc not in self._packets and len(self._packets) >= MOST_SENDERS:
            self.expire(now)
        kept = self._packets.get(ssrc)
        if kept is None and len(self._packets) < MOST_SENDERS:
            kept = self._packets[ssrc] = deque()
        if kept is None or len(kept) >= MOST_PACKETS:
            self._drop(1)
        else:
            kept.append((datagram, address, now))

    def claim(self, ssrc: int, now: float) -> list[Waiting]:
        """Hand out the packets of a session that has opened."""
        kept = self._packets.pop(ssrc, ())
        claimed = [waiting for waiting in kept if now - waiting[2] <= LONGEST_WAIT]
        if len(claimed) < len(kept):
            self._drop(len(kept) - len(claimed))
        return claimed

    def expire(self, now: float) -> None:
        """Forget every ssrc whose first packet has waited too long."""
        for ssrc in [ssrc for ssrc, kept in self._packets.items() if now - kept[0][2] > LONGEST_WAIT]:
            self._drop(len(self._packets.pop(ssrc)))

    def _drop(self, packets: int) -> None:
        self._drops["unknown_ssrc"] += packets

"""Packets that came before their session: a device may be faster than a mailbox."""

from collections import deque

from fleet.edge.socket import Address

MOST_SENDERS = 16
MOST_PACKETS = 64
LONGEST_WAIT = 2.0
"""Seconds."""

Waiting = tuple[bytes, Address, float]


class Lobby:
    """Keeps a few packets of a few unknown ssrcs for a short time."""

    def __init__(self) -> None:
        self._packets: dict[int, deque[Waiting]] = {}

    def keep(self, ssrc: int, datagram: bytes, address: Address, now: float) -> bool:
        """Keep one packet; False when there is no room (an unknown ssrc more, or too many packets of this)."""
        kept = self._packets.get(ssrc)
        if kept is None:
            if len(self._packets) >= MOST_SENDERS:
                self.expire(now)
                if len(self._packets) >= MOST_SENDERS:
                    return False
            kept = self._packets[ssrc] = deque()
        if len(kept) >= MOST_PACKETS:
            return False
        kept.append((datagram, address, now))
        return True

    def claim(self, ssrc: int, now: float) -> list[Waiting]:
        """Hand out the packets of a session that has opened."""
        return [waiting for waiting in self._packets.pop(ssrc, ()) if now - waiting[2] <= LONGEST_WAIT]

    def expire(self, now: float) -> None:
        """Forget every ssrc whose first packet has waited too long."""
        for ssrc in [ssrc for ssrc, kept in self._packets.items() if now - kept[0][2] > LONGEST_WAIT]:
            del self._packets[ssrc]

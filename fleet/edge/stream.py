"""Which datagrams of a session are believed, and where the device is."""

from collections import Counter
from typing import Final

from fleet.edge.socket import Address
from fleet.wire import toc
from fleet.wire.packet import Channel, Header
from fleet.wire.replay import ReplayWindow

RATE: Final = 40.0
"""Packets a second of 60 ms that a session may send for long; shorter frames may come more often."""
BURST: Final = 64.0
"""Packets of 60 ms that may come at once: a device that was busy sends up to 40."""
PROOFS: Final = 2
"""Good packets in a row that make an address the session's: one may be a forger's lucky guess."""
_REASONS: Final = {"flags": "flags", "jump": "jump", "duplicate": "replay", "old": "replay"}
"""Why packets are dropped, as it is counted."""


class UplinkStream:
    """Opens the packets of one session.

    Args:
        channel: Of the session.
        frame_ms: Milliseconds a packet that the device announced.
        drops: Counts dropped packets by reason.
    """

    def __init__(self, channel: Channel, frame_ms: int, drops: Counter[str]) -> None:
        self._channel = channel
        self._frame_ms = frame_ms
        self._drops = drops
        self._window = ReplayWindow()
        more = max(1.0, 60 / frame_ms)
        self._rate, self._burst = RATE * more, BURST * more
        self._tokens, self._counted_at = self._burst, 0.0
        self._candidate: Address | None = None
        self._proofs = 0
        self.address: Address | None = None
        """Where the device sends from; None until it has proved that."""

    @property
    def newest(self) -> int:
        """The highest sequence number that was admitted: how many packets the device has sent."""
        return self._window.newest

    def admit(self, header: Header, datagram: bytes, address: Address, now: float) -> bytes | None:
        """Return the Opus packet of a datagram, or None when it is dropped."""
        # The nonce's flags are 0; with others it may be a packet of ours that somebody sent back.
        verdict = "flags" if header.flags else self._window.check(header.sequence)
        if (verdict != "new" and verdict != "late") or not self._afford(now):
            self._drops[_REASONS.get(verdict, "rate")] += 1
            return None
        payload, known = self._channel.open(datagram), address == self.address
        if toc.duration_ms(payload) == self._frame_ms:
            if known:
                self._candidate = None
            else:
                self._consider(address)
        elif known and len(payload) < toc.SHORTEST_AUDIO:
            # Silence without any sign of the key: only from where the device is known to be.
            payload = toc.empty_packet(self._frame_ms)
        else:
            self._drops["not_audio"] += 1
            return None
        self._window.record(header.sequence)
        return payload

    def _afford(self, now: float) -> bool:
        """Take one packet from what the session may still send now."""
        tokens = self._tokens + (now - self._counted_at) * self._rate
        self._counted_at = now
        if tokens < 1:
            self._tokens = tokens
            return False
        self._tokens = (tokens if tokens < self._burst else self._burst) - 1
        return True

    def _consider(self, address: Address) -> None:
        if address != self._candidate:
            self._candidate, self._proofs = address, 0
        self._proofs += 1
        if self._proofs >= PROOFS:
            self.address, self._candidate = address, None

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
"""Good packets in a row that move a session to a new address."""


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
        """Where the device sends from; None until its first good packet."""

    def admit(self, header: Header, datagram: bytes, address: Address, now: float) -> bytes | None:
        """Return the Opus packet of a datagram, or None when it is dropped."""
        reason = self._refuse(header, now)
        if reason:
            self._drops[reason] += 1
            return None
        payload = self._channel.open(datagram)
        proven = toc.duration_ms(payload) == self._frame_ms
        # Silence without any sign of the key: only from where the device is known to be.
        if not proven and not (len(payload) < toc.SHORTEST_AUDIO and address == self.address):
            self._drops["not_audio"] += 1
            return None
        self._window.record(header.sequence)
        if not proven:
            return toc.empty_packet(self._frame_ms)
        if address != self.address:
            self._consider(address)
        else:
            self._candidate = None
        return payload

    def _refuse(self, header: Header, now: float) -> str | None:
        if header.flags:
            # The nonce's flags are 0; with others it may be a packet of ours that somebody sent back.
            return "flags"
        verdict = self._window.check(header.sequence)
        if verdict not in ("new", "late"):
            return "jump" if verdict == "jump" else "replay"
        tokens = min(self._burst, self._tokens + (now - self._counted_at) * self._rate)
        self._counted_at = now
        if tokens < 1:
            self._tokens = tokens
            return "rate"
        self._tokens = tokens - 1
        return None

    def _consider(self, address: Address) -> None:
        if address != self._candidate:
            self._candidate, self._proofs = address, 0
        self._proofs += 1
        if self.address is None or self._proofs >= PROOFS:
            self.address, self._candidate = address, None

"""Limit a session's audio: bursts, the lasting rate, and the sequence numbers since it began."""

from typing import Final, Literal

from fleet.roles.edge.transport.packet_pace import PacketPace

RATE: Final = 40.0
"""Lasting limit of packets of 60 ms a second; for shorter frames it is higher."""
BURST: Final = 64.0
"""Packets of 60 ms that may come at once: firmware that was busy sends up to 40."""
AHEAD_SECONDS: Final = 6.0
"""Audio that a device may send before its session is open on this edge: 2 s of a wake word (33 packets, contract 5.1),
and the packets that waited for the session."""
FASTEST_CLOCK: Final = 1.02
"""Highest rate of a device's clock against ours."""


class Allowance:
    """The limits of one session. A caller that admits packets counts them in `pace`.

    Args:
        frame_ms: Milliseconds a packet.
        now: When the session began.
    """

    __slots__ = ("_ahead", "_began", "_clock", "highest", "pace")

    def __init__(self, frame_ms: int, now: float) -> None:
        more = max(1.0, 60 / frame_ms)
        self.pace = PacketPace(1 / (RATE * more), BURST * more, now)
        self._began, self._clock = now, 1000 / frame_ms * FASTEST_CLOCK
        self._ahead = AHEAD_SECONDS * 1000 / frame_ms
        self.highest = int(self._ahead)
        """A number that may certainly be admitted, as all below it: the limit rises with the clock."""

    def refuse(self, sequence: int, now: float) -> Literal["rate", "jump"] | None:
        """Return why a packet may not be admitted: the rate is too high, or its number is ahead of the clock."""
        if not self.pace.allows(now):
            return "rate"
        if sequence > self.highest:
            self.highest = int(self._ahead + (now - self._began) * self._clock)
        return "jump" if sequence > self.highest else None

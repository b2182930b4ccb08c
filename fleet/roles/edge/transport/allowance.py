"""How much audio a session may send: at once, for long, and since it began."""

from typing import Final, Literal

RATE: Final = 40.0
"""Packets a second of 60 ms that a session may send for long; shorter frames may come more often."""
BURST: Final = 64.0
"""Packets of 60 ms that may come at once: a device that was busy sends up to 40."""
AHEAD_SECONDS: Final = 6.0
"""Audio that a device may have sent before its session is known here: 2 s of a wake word (33 packets, contract 5.1),
and what waited until the session was opened here."""
FASTEST_CLOCK: Final = 1.02
"""A device's clock against ours, at most."""


class Allowance:
    """One session's; whoever admits a packet takes a token.

    Args:
        frame_ms: Milliseconds a packet.
        now: When the session began.
    """

    __slots__ = ("_ahead", "_began", "_burst", "_counted_at", "_pace", "_rate", "tokens")

    def __init__(self, frame_ms: int, now: float) -> None:
        more = max(1.0, 60 / frame_ms)
        self._rate, self._burst = RATE * more, BURST * more
        self.tokens, self._counted_at = self._burst, now
        self._began, self._pace = now, 1000 / frame_ms * FASTEST_CLOCK
        self._ahead = AHEAD_SECONDS * 1000 / frame_ms

    def refuse(self, sequence: int, now: float) -> Literal["rate", "jump"] | None:
        """Return why a packet may not be admitted now: too many were, or its number is ahead of the clock."""
        tokens = self.tokens + (now - self._counted_at) * self._rate
        self._counted_at = now
        self.tokens = tokens = tokens if tokens < self._burst else self._burst
        if tokens < 1:
            return "rate"
        return "jump" if sequence > self._ahead + (now - self._began) * self._pace else None

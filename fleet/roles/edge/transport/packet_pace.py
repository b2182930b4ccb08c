"""Count packets against the clock: the generic cell rate algorithm (ITU-T I.371), a token bucket with one variable."""

_EXACT = 1e-6
"""Tolerance for rounding errors, in packets."""


Terms = tuple[float, float, float]
"""A pace's `due`, `step` and `most`."""


class PacketPace:
    """Packets come in time at one in each `step`; some may come before their time.

    The native part of the socket does the same for usual packets (`struct pace` in stream.h).

    Args:
        step: Seconds a packet.
        most: Packets that may come at once after a pause.
        due: When the next packet is in time.
    """

    __slots__ = ("due", "most", "step")

    def __init__(self, step: float, most: float, due: float) -> None:
        self.step = step
        self.most = (most - 1 + _EXACT) * step
        """Seconds by which a packet may come before its time."""
        self.due = due

    def allows(self, now: float) -> bool:
        """Return whether a packet may come now."""
        return self.due - now <= self.most

    def add(self, now: float, packets: int = 1) -> None:
        """Count packets that came."""
        self.due = max(self.due, now) + packets * self.step

    @property
    def terms(self) -> Terms:
        return self.due, self.step, self.most

"""When a session has been silent for so long that it should end."""

from typing import Literal

UNUSED_SECONDS = 15.0
"""A session without any packet and without listening ends this long after it was opened."""


class SilenceTimeout:
    """Watches one session.

    Args:
        now: When the session was opened.
        idle_seconds: Silence that ends a session which was used.
    """

    def __init__(self, now: float, idle_seconds: float) -> None:
        self._since = now
        self._idle_seconds = idle_seconds
        self._reported = False
        self.used = False
        """Whether the device sent audio or began to listen."""

    def stir(self, now: float) -> None:
        """Somebody spoke, or the server did."""
        self._since = now
        self._reported = False

    def end(self, now: float) -> Literal["idle", "unused"] | None:
        """Say why the session should end; once for each silence."""
        if self._reported or now - self._since < (self._idle_seconds if self.used else UNUSED_SECONDS):
            return None
        self._reported = True
        return "idle" if self.used else "unused"

"""Decide when a session has been silent for so long that it should end."""

from typing import Literal

UNUSED_SECONDS = 15.0
"""A session without packets and without `listen start` ends this long after it was opened."""


class SilenceTimeout:
    """The silence timeout of one session.

    Args:
        now: When the session was opened.
    """

    def __init__(self, now: float) -> None:
        self._since = now
        self._reported = False
        self.used = False
        """Whether the device sent audio or began to listen."""

    def reset(self, now: float) -> None:
        """Restart the timeout: the user or the server spoke."""
        self._since = now
        self._reported = False

    def reason_to_end(self, now: float, idle_seconds: float) -> Literal["idle", "unused"] | None:
        """Return why the session should end, or None; each silence is reported once.

        Args:
            now: The time.
            idle_seconds: Silence that ends a session which was used.
        """
        if self._reported or now - self._since < (idle_seconds if self.used else UNUSED_SECONDS):
            return None
        self._reported = True
        return "idle" if self.used else "unused"

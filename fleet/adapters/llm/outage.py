"""A circuit breaker: after a failure, attempts are paused for a short time."""

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 60.0
PROBE_SECONDS = 10.0
"""Seconds that one attempt blocks others."""


class Outage:
    """When to try again after a failure: the pause doubles with each failure, up to a minute."""

    def __init__(self) -> None:
        self._pause = 0.0
        self._until = 0.0
        self._probing = False

    def may_try(self, now: float) -> bool:
        """Return whether to try; after a failure only one attempt at a time is allowed, until its outcome is known."""
        if not self._pause:
            return True
        if now < self._until:
            return False
        self._until, self._probing = now + PROBE_SECONDS, True
        return True

    def failed(self, now: float) -> None:
        """Record a failure; concurrent attempts that fail count once."""
        if self._pause and now < self._until and not self._probing:
            return
        self._probing = False
        self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        self._until = now + self._pause

    def worked(self) -> None:
        """Record a success: clear the failures."""
        self._pause = 0.0

"""Remembering for a short time that something is out of order, so that not everybody waits for it in vain."""

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 60.0
PROBE_SECONDS = 10.0
"""How long one attempt keeps the others away."""


class Outage:
    """When something that failed is worth an attempt again: the pause doubles with each failure, up to a minute."""

    def __init__(self) -> None:
        self._pause = 0.0
        self._until = 0.0
        self._probing = False

    def may_try(self, now: float) -> bool:
        """Tell whether to try; after a failure only one at a time is told yes, until its outcome is known."""
        if not self._pause:
            return True
        if now < self._until:
            return False
        self._until, self._probing = now + PROBE_SECONDS, True
        return True

    def failed(self, now: float) -> None:
        """Note a failure; those of attempts that began together count once."""
        if self._pause and now < self._until and not self._probing:
            return
        self._probing = False
        self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        self._until = now + self._pause

    def worked(self) -> None:
        """Forget the failures."""
        self._pause = 0.0

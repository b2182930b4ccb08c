"""What a build whose echo the server cancels sends along: the timestamps of what was just played (contract 4.4)."""

from collections import deque

_MOST_WAITING = 3
_MOST_KEPT = 64


class EchoReferences:
    """Timestamps of played packets on their way to the captured frames; above 64 the oldest goes.

    Args:
        enabled: Whether this is such a build; else every frame carries 0.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._waiting: deque[int] = deque(maxlen=_MOST_KEPT)

    def played(self, timestamp: int) -> None:
        """Take the timestamp of a packet that begins to sound."""
        if self._enabled and timestamp > 0:
            self._waiting.append(timestamp)

    def pop(self) -> int:
        """Return what the frame that was just captured carries; with more than three waiting it carries none."""
        late = len(self._waiting) > _MOST_WAITING
        taken = self._waiting.popleft() if self._waiting else 0
        return 0 if late else taken

    def clear(self) -> None:
        self._waiting.clear()

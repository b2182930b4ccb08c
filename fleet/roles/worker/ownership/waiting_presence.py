"""A presence on its way through a shard's queue."""

from dataclasses import dataclass

from fleet.ground.tasks import Ended
from fleet.wire.presence import Presence


@dataclass(slots=True, eq=False)
class WaitingPresence:
    """A presence that was received and is not recorded yet."""

    message: Presence | None
    """None if it is malformed."""
    ended: Ended
    recording: bool = False

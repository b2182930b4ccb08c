"""Work on an utterance that may go on: bounded, because a device can pause as often as it likes."""

from typing import Final

from fleet.adapters.contained import has_room
from fleet.core.ports import ASR_RATE, Asr, Transcript
from fleet.core.rates import Buckets, Rate
from fleet.ground.metrics import turns
from fleet.roles.edge.agents import EdgeAgent

RATE: Final = Rate(1.0, 4)
"""Of one device. A command has one or two pauses; three English texts of a synthetic voice had 0.5 to 0.8 a second."""
LONGEST_SECONDS: Final = 28.0
"""The end of an utterance that is looked at: a recogniser's window."""
LONGEST_BYTES: Final = int(LONGEST_SECONDS) * ASR_RATE * 2


class EarlyWork:
    """Decides whether to look at an utterance before it is over; without that, silence alone ends it."""

    def __init__(self) -> None:
        self._buckets = Buckets(RATE)

    def may_begin(self, device: str, asr: Asr, now: float) -> bool:
        """Return whether to begin, and take that from what the device may ask for; else count the reason.

        Args:
            device: Its MAC.
            asr: Its recogniser. Half of the places are for utterances that are over.
            now: The time.
        """
        if not _has_room(asr):
            return False
        if self._buckets.take(device, now):
            turns.early_work_skipped.add("too_often")
            return False
        return True

    async def recognise(self, agent: EdgeAgent, pcm: bytes) -> Transcript | None:
        """Return what was said at the end of an utterance; None if the others that began with it left no room.

        Raises:
            FleetError: See `fleet.core.ports.Asr`.
        """
        # Many sessions may have been told to begin in the same tick, before one of them had its place.
        return await agent.transcribe(pcm[-LONGEST_BYTES:]) if _has_room(agent.asr) else None


def _has_room(asr: Asr) -> bool:
    room = has_room(asr)
    if not room:
        turns.early_work_skipped.add("recogniser_busy")
    return room

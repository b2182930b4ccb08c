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
MOST: Final = 128
"""Recognitions of utterances that may go on, at once: an endpoint has no places of its own that could be taken."""
HEAD_STARTS: Final = Rate(0.3, 6)
"""Answers of one device that are prepared before its utterance is over: a withdrawn one is a wasted request."""
_PIECE_BYTES: Final = 8 * ASR_RATE * 2
"""Audio that counts as one recognition of `RATE`: of a long utterance each one costs more."""


class EarlyWork:
    """Decides whether to look at an utterance before it is over; without that, silence alone ends it."""

    def __init__(self) -> None:
        self._buckets, self._head_starts = Buckets(RATE), Buckets(HEAD_STARTS)
        self._running = 0

    def may_begin(self, device: str, asr: Asr, now: float, size: int = 0) -> bool:
        """Return whether to begin, and take that from what the device may ask for; else count the reason.

        Args:
            device: Its MAC.
            asr: Its recogniser. Half of the places are for utterances that are over.
            now: The time.
            size: Bytes of the utterance so far.
        """
        if not self._has_room(asr):
            return False
        if self._buckets.take(device, now, 1 + min(size, LONGEST_BYTES) // _PIECE_BYTES):
            turns.early_work_skipped.add("too_often")
            return False
        return True

    def may_prepare(self, device: str, now: float) -> bool:
        """Return whether to prepare an answer, and take that from what the device may ask for."""
        return not self._head_starts.take(device, now)

    async def recognise(self, agent: EdgeAgent, pcm: bytes, expected: str = "") -> Transcript | None:
        """Return what was said at the end of an utterance; None if the others that began with it left no room.

        Args:
            agent: Whose recogniser it is.
            pcm: The utterance.
            expected: See `fleet.core.ports.Asr`.

        Raises:
            FleetError: See `fleet.core.ports.Asr`.
        """
        # Many sessions may have been told to begin in the same tick, before one of them had its place.
        if not self._has_room(agent.asr):
            return None
        self._running += 1
        try:
            return await agent.transcribe(pcm[-LONGEST_BYTES:], expected)
        finally:
            self._running -= 1

    def _has_room(self, asr: Asr) -> bool:
        room = self._running < MOST and has_room(asr)
        if not room:
            turns.early_work_skipped.add("recogniser_busy")
        return room

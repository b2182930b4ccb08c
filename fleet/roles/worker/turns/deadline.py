"""Limit the time of a turn; its clock stands still during slow tool calls."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.ground.errors import FleetError
from fleet.ground.tasks import running
from fleet.roles.worker.turns.speech import AnswerSpeech

log = logging.getLogger(__name__)

SETTLE_SECONDS = 0.5
"""Least time from `tts start` to a call that blocks the device; until then the device discards audio."""
PROGRESS_SECONDS = 4.0
"""Pause between two `TurnProgressCommand`s; an edge gives a turn up at the earliest five seconds after the last."""


class TurnDeadline:
    """The limit of one turn.

    Args:
        seconds: Longest time of a turn without its slow calls.
        speech: Of the turn; sends progress to its edge.
        announced: Whether the edge has sent `tts start` with the utterance.
    """

    def __init__(self, seconds: float, speech: AnswerSpeech, *, announced: bool = False) -> None:
        self._seconds = seconds
        self._speech = speech
        self._limit = asyncio.timeout(None)
        self._clock = asyncio.get_running_loop().time
        self._announced_at = self._clock() if announced else None

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Limit the time of the block.

        Raises:
            TimeoutError: The turn took too long.
        """
        async with asyncio.timeout(self._seconds) as self._limit:
            yield

    @asynccontextmanager
    async def slow_call(self, seconds: float) -> AsyncIterator[None]:
        """Stop the turn's clock during the block, for at most `seconds` and `SETTLE_SECONDS`; send the edge progress.

        If an answer has just begun, wait first until the device is in its speaking state: a device whose main loop is
        blocked before that discards the audio (device contract, section 5.3.4).
        """
        left = (self._limit.when() or self._clock() + self._seconds) - self._clock()
        self._limit.reschedule(self._clock() + SETTLE_SECONDS + seconds + left)
        try:
            async with running("turn goes on", self._repeat_progress):
                begun_at = self._speech.begun_at if self._announced_at is None else self._announced_at
                if begun_at is not None:
                    await asyncio.sleep(begun_at + SETTLE_SECONDS - self._clock())
                yield
        finally:
            if not self._limit.expired():
                self._limit.reschedule(self._clock() + left)
        await self._send_progress()

    async def _repeat_progress(self) -> None:
        while True:
            await self._send_progress()
            await asyncio.sleep(PROGRESS_SECONDS)

    async def _send_progress(self) -> None:
        try:
            await self._speech.edge.send_progress()
        except FleetError as error:
            log.warning("progress not sent to the edge", extra={"reason": str(error)})

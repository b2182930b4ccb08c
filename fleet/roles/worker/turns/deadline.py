"""How long a turn may take, and what is done meanwhile when a tool takes long."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.ground.errors import FleetError
from fleet.ground.tasks import running
from fleet.roles.worker.turns.speech import AnswerSpeech

log = logging.getLogger(__name__)

SETTLE_SECONDS = 0.5
"""From the announcement of speech to a call that blocks the device: it must have begun to take audio by then."""
INFORM_SECONDS = 4.0
"""Pause between two mails that a turn goes on; an edge gives up at least five seconds after the last."""


class TurnDeadline:
    """The limit of one turn.

    Args:
        seconds: Longest time of a turn; slow calls do not count.
        speech: Of the turn; reaches its edge.
    """

    def __init__(self, seconds: float, speech: AnswerSpeech) -> None:
        self._seconds = seconds
        self._speech = speech
        self._limit = asyncio.timeout(None)
        self._clock = asyncio.get_running_loop().time

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Limit the block's time.

        Raises:
            TimeoutError: The turn took too long.
        """
        async with asyncio.timeout(self._seconds) as self._limit:
            yield

    @asynccontextmanager
    async def slow(self, seconds: float) -> AsyncIterator[None]:
        """Give the block so much time of its own, and keep the turn's edge waiting.

        Speech that was announced just now is first given time to begin: a device whose main loop is blocked before it
        has begun to speak throws the audio away (device contract, section 5.3.4).
        """
        left = (self._limit.when() or self._clock() + self._seconds) - self._clock()
        self._limit.reschedule(self._clock() + SETTLE_SECONDS + seconds + left)
        try:
            async with running("turn goes on", self._inform):
                if self._speech.begun_at is not None:
                    await asyncio.sleep(self._speech.begun_at + SETTLE_SECONDS - self._clock())
                yield
        finally:
            if not self._limit.expired():
                self._limit.reschedule(self._clock() + left)
        await self._send_progress()

    async def _inform(self) -> None:
        while True:
            await self._send_progress()
            await asyncio.sleep(INFORM_SECONDS)

    async def _send_progress(self) -> None:
        try:
            await self._speech.stay()
        except FleetError as error:
            log.warning("edge not informed", extra={"reason": str(error)})

"""Turning a session's utterances into text, one at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from fleet.core.ports import Transcript
from fleet.edge.recorder import Utterance
from fleet.edge.services import Services
from fleet.errors import FleetError

log = logging.getLogger(__name__)

LONGEST_SECONDS = 20.0
"""Longest wait for a transcript; engines and endpoints have shorter limits of their own."""


class Recognition:
    """The recogniser's side of one session.

    Args:
        services: Of the edge.
        on_text: Takes an utterance and what was said, which may be nothing.
        on_failure: Called when it cannot be known what was said.
    """

    def __init__(
        self,
        services: Services,
        on_text: Callable[[Utterance, Transcript], Awaitable[None]],
        on_failure: Callable[[], None],
    ) -> None:
        self._services = services
        self._on_text = on_text
        self._on_failure = on_failure
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, utterance: Utterance) -> None:
        """Recognise an utterance; an older one that is still at it is given up."""
        self.cancel()
        self._task = self._services.spawn("recognition", self._recognise(utterance))

    def cancel(self) -> None:
        if self._task:
            self._task.cancel()
            self._task = None

    async def _recognise(self, utterance: Utterance) -> None:
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                transcript = await self._services.asr.transcribe(utterance.pcm)
        except (FleetError, TimeoutError) as error:
            reason = str(error) or "no transcript within the limit"
            log.warning("recognition failed", extra={"reason": reason, "kind": type(error).__name__})
            self._task = None
            self._on_failure()
            return
        extra = {"asr_seconds": round(clock() - asked_at, 3), "language": transcript.language}
        log.info("utterance recognised", extra={**extra, "pii": {"text": transcript.text}})
        self._task = None
        await self._on_text(utterance, transcript)

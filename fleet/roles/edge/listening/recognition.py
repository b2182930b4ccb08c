"""Turning a session's utterances into text, one at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from fleet.core.ports import Transcript
from fleet.ground.errors import FleetError
from fleet.ground.metrics import turns
from fleet.ground.tracing import spans
from fleet.ground.tracing import turns as traced
from fleet.roles.edge.listening.utterance_collector import Utterance
from fleet.roles.edge.services import EdgeServices

log = logging.getLogger(__name__)

LONGEST_SECONDS = 20.0
"""Longest wait for a transcript; engines and endpoints have shorter limits of their own."""
_ABOUT: Final = {"gen_ai.operation.name": "speech_to_text"}


class Recognition:
    """The recogniser's side of one session.

    Args:
        services: Of the edge.
        on_text: Takes an utterance and what was said, which may be nothing.
        on_failure: Called when it cannot be known what was said.
    """

    def __init__(
        self,
        services: EdgeServices,
        on_text: Callable[[Utterance, Transcript], Awaitable[None]],
        on_failure: Callable[[], None],
    ) -> None:
        self._services = services
        self._on_text = on_text
        self._on_failure = on_failure
        self._task: asyncio.Task[object] | None = None
        self._early: _Early | None = None

    @property
    def running(self) -> bool:
        """Whether an utterance that has ended is being recognised."""
        return self._task is not None and not self._task.done()

    def prepare(self, utterance: Utterance) -> None:
        """Begin to recognise what has perhaps ended; `start` takes the result if nothing more was said."""
        self._drop_early()
        if not self.running:
            early = self._early = _Early(utterance.voiced_ms)
            early.task = self._services.spawn("early recognition", self._prepare(early, utterance))

    def start(self, utterance: Utterance) -> None:
        """Recognise an utterance; an older one that is still at it is given up."""
        early, self._early = self._early, None
        self.cancel()
        self._task = self._services.spawn("recognition", self._recognise(utterance, early))

    def cancel(self) -> None:
        self._drop_early()
        if self._task:
            self._task.cancel()
            self._task = None

    def _drop_early(self) -> None:
        if self._early:
            self._early.drop()
            self._early = None

    async def _prepare(self, early: "_Early", utterance: Utterance) -> None:
        try:
            early.settle(await self._transcribe(utterance))
        except (FleetError, TimeoutError):
            early.settle(None)  # the real attempt will say why

    async def _recognise(self, utterance: Utterance, early: "_Early | None") -> None:
        ago = asyncio.get_running_loop().time() - utterance.ended_at
        with traced.hearing({"fleet.speech_seconds": utterance.voiced_ms / 1000}, ago):
            await self._understand(utterance, early)

    async def _understand(self, utterance: Utterance, early: "_Early | None") -> None:
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        try:
            with spans.span("transcribe", _ABOUT) as span:
                transcript = await self._take(early, utterance)
                spans.private(span, {"fleet.transcript": transcript.text})
        except (FleetError, TimeoutError) as error:
            reason = str(error) or "no transcript within the limit"
            log.warning("recognition failed", extra={"reason": reason, "kind": type(error).__name__})
            self._task = None
            turns.utterances.add("failed")
            self._on_failure()
            return
        extra = {"asr_seconds": round(clock() - asked_at, 3), "language": transcript.language}
        turns.transcription_delay.observe(clock() - asked_at)
        log.info("utterance recognised", extra={**extra, "pii": {"text": transcript.text}})
        self._task = None
        await self._on_text(utterance, transcript)

    async def _take(self, early: "_Early | None", utterance: Utterance) -> Transcript:
        if early is not None:
            try:
                if early.voiced_ms == utterance.voiced_ms and (transcript := await early.outcome) is not None:
                    return transcript
            finally:
                early.drop()
        return await self._transcribe(utterance)

    async def _transcribe(self, utterance: Utterance) -> Transcript:
        async with asyncio.timeout(LONGEST_SECONDS):
            return await self._services.asr.transcribe(utterance.pcm)


class _Early:
    """A recognition that was begun in a pause."""

    def __init__(self, voiced_ms: float) -> None:
        self.voiced_ms = voiced_ms
        """How much speech it covers: an utterance with more has gone on after the pause."""
        self.outcome: asyncio.Future[Transcript | None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[object] | None = None

    def settle(self, transcript: Transcript | None) -> None:
        if not self.outcome.done():
            self.outcome.set_result(transcript)

    def drop(self) -> None:
        """Give it up, if it still runs."""
        if self.task:
            self.task.cancel()

"""Recognise a session's utterances, one at a time."""

import asyncio
import logging
from typing import Final, Protocol

from fleet.core.ports import Transcript
from fleet.core.text.phrases import Phrase
from fleet.ground.errors import FleetError
from fleet.ground.metrics import turns
from fleet.ground.requester import working_for
from fleet.ground.tasks import provider_errors
from fleet.ground.tracing import spans
from fleet.ground.tracing import turns as traced
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.early_work import LONGEST_BYTES
from fleet.roles.edge.listening.utterance_collector import Utterance
from fleet.roles.edge.services import EdgeServices

log = logging.getLogger(__name__)

LONGEST_SECONDS = 20.0
"""Longest wait for a transcript; engines and endpoints have shorter limits of their own."""
_ABOUT: Final = {"gen_ai.operation.name": "speech_to_text"}


class TranscriptHandler(Protocol):
    """Handles transcripts."""

    async def take_transcript(self, utterance: Utterance, transcript: Transcript) -> None:
        """Take an utterance and its transcript, which may be empty."""

    def fail(self, name: Phrase) -> None:
        """Apologise for a failed recognition."""


class Recognition:
    """Runs the recogniser for one session.

    Args:
        transport: Names the session in the log.
        services: Of the edge.
        handler: Handles the transcripts.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices, handler: TranscriptHandler) -> None:
        self._transport = transport
        self._services = services
        self._handler = handler
        self._task: asyncio.Task[object] | None = None
        self._early: EarlyRecognition | None = None

    @property
    def running(self) -> bool:
        """Whether an utterance that has ended is being recognised."""
        return self._task is not None and not self._task.done()

    @property
    def preparing(self) -> bool:
        """Whether what was said until a pause is being recognised."""
        return self._early is not None and not self._early.outcome.done()

    @property
    def prepared_whole(self) -> bool:
        """Whether what was begun at the last pause covers the whole utterance."""
        return self._early is not None and self._early.whole

    def prepare(self, utterance: Utterance) -> "EarlyRecognition | None":
        """Begin to recognise at a pause; `start` uses the result if no speech followed the pause.

        Returns:
            What was begun; None while an utterance that has ended is being recognised.
        """
        self.drop_early()
        if self.running:
            return None
        early = self._early = EarlyRecognition(utterance)
        with self._transport.fields(), working_for(self._transport.opened.device):
            early.task = self._services.tasks.start("early recognition", self._prepare(early, utterance))
        return early

    def start(self, utterance: Utterance) -> None:
        """Recognise an utterance; cancel the recognition of an older one."""
        early, self._early = self._early, None
        self.cancel()
        with working_for(self._transport.opened.device):
            self._task = self._services.tasks.start("recognition", self._recognise(utterance, early))

    def cancel(self) -> None:
        self.drop_early()
        if self._task:
            self._task.cancel()
            self._task = None

    def drop_early(self) -> None:
        """Cancel what was begun at a pause: speech followed it."""
        if self._early:
            self._early.drop()
            self._early = None

    async def _prepare(self, early: "EarlyRecognition", utterance: Utterance) -> None:
        agent = self._transport.agent
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                transcript = await self._services.early_work.recognise(agent.current, utterance.pcm, agent.expected)
            early.skipped = transcript is None
            early.settle(transcript)
        except (FleetError, TimeoutError):
            pass
        finally:
            early.settle(None)  # `_recognise` tries again and reports the error

    async def _recognise(self, utterance: Utterance, early: "EarlyRecognition | None") -> None:
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        with traced.utterance_span({"fleet.speech_seconds": utterance.voiced_ms / 1000}, asked_at - utterance.ended_at):
            try:
                with spans.span("transcribe", _ABOUT) as span:
                    async with asyncio.timeout(LONGEST_SECONDS):
                        transcript = await _outcome(early, utterance)
                        if transcript is None:
                            agent = self._transport.agent
                            with provider_errors("asr"):
                                transcript = await agent.current.transcribe(utterance.pcm, agent.expected)
                    spans.set_private(span, {"fleet.transcript": transcript.text})
            except (FleetError, TimeoutError) as error:
                reason = str(error) or "no transcript within the limit"
                log.warning("recognition failed", extra={"reason": reason, "kind": type(error).__name__})
                self._task = None
                turns.utterances.add("failed")
                self._handler.fail("not_understood")
                return
            extra = {"asr_seconds": round(clock() - asked_at, 3), "language": transcript.language}
            turns.transcription_delay.observe(clock() - asked_at)
            log.info("utterance recognised", extra={**extra, "pii": {"text": transcript.text}})
            self._task = None
            await self._handler.take_transcript(utterance, transcript)


class EarlyRecognition:
    """A recognition that was begun in a pause."""

    def __init__(self, utterance: Utterance) -> None:
        self._voiced_ms = utterance.voiced_ms
        self.whole = len(utterance.pcm) <= LONGEST_BYTES
        """Whether it covers the utterance from its begin."""
        self.skipped = False
        """Whether the recogniser had no room when it should have begun."""
        self.outcome: asyncio.Future[Transcript | None] = asyncio.get_running_loop().create_future()
        """The transcript; None if recognition failed or was cancelled."""
        self.task: asyncio.Task[object] | None = None

    def covers(self, utterance: Utterance) -> bool:
        """Return whether it covers all of an utterance: one with more speech went on after the pause."""
        return self.whole and self._voiced_ms == utterance.voiced_ms

    def settle(self, transcript: Transcript | None) -> None:
        if not self.outcome.done():
            self.outcome.set_result(transcript)

    def drop(self) -> None:
        """Cancel it, if it still runs."""
        if self.task:
            self.task.cancel()


async def _outcome(early: EarlyRecognition | None, utterance: Utterance) -> Transcript | None:
    """Return the transcript from the pause, if no speech followed it."""
    if early is None:
        return None
    try:
        return await early.outcome if early.covers(utterance) else None
    finally:
        early.drop()

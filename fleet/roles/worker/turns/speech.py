"""Cut the model's text into sentences, clean them, and hand them to the session's edge, if there is one.

Devices that show text get it at the same time (`fleet.roles.worker.turns.messages`).
"""

import asyncio
import logging

from msgspec.structs import replace

from fleet.adapters.redis.client.pipeline import Words
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.adapters.redis.shards.inbox import NO_POST, Inboxes
from fleet.core.text.emotion import emotion_of
from fleet.core.text.pieces import PIECE_CHARACTERS, cut_text
from fleet.core.text.sentences import SentenceSplitter
from fleet.core.text.speakable import speakable
from fleet.ground.loop_yield import LoopYield
from fleet.ground.metrics import turns as timed
from fleet.ground.metrics.histogram import HistogramMetric
from fleet.ground.tracing import spans
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.turns.edge_output import EdgeOutput
from fleet.roles.worker.turns.messages import ScreenMessages
from fleet.roles.worker.turns.stages import TurnStages
from fleet.wire.edge_messages import (
    SpeakSentenceCommand,
    StartAnswerCommand,
    UtteranceEvent,
)

log = logging.getLogger(__name__)


class AnswerSpeech:
    """The speech of one turn.

    Sentences wait until they are handed over, so that the journal can be written first. A worker that takes the turn up
    sends the same sentences with the same numbers, and the edge skips those that it has.

    Args:
        shard: Publishes to a device that shows text.
        inboxes: Of the edges.
        session: Its edge speaks.
        utterance: What is answered; its turn and, until `set_language`, its language are the speech's.
        handed: Number of sentences that the edge got before the turn was taken up.
    """

    def __init__(
        self, shard: Shard, inboxes: Inboxes, session: SessionRecord, utterance: UtteranceEvent, handed: int = 0
    ) -> None:
        self.edge = EdgeOutput(inboxes, session, utterance.turn)
        """Has the sentences until they are handed over."""
        self._session = session
        self.utterance = utterance
        """The utterance that is answered; its language is the language of the speech."""
        self.messages = ScreenMessages(shard, session)
        """The text output."""
        self._splitter = SentenceSplitter()
        self.stages = TurnStages(session.id, utterance)
        """Their times, for the event of the turn's end."""
        self.begun_at: float | None = None
        """When `StartAnswerCommand` was queued, on the loop's clock; None before."""
        self._emotion: str | None = "" if handed else None
        """The answer's emotion until the edge has it; None until it is known."""
        self._written = 0
        self.handed = handed
        """Number of sentences handed over."""
        self.agent: str | None = None
        """Digest of the agent, once it is known."""

    @property
    def waits(self) -> bool:
        """Whether there are sentences to hand over."""
        return self._written > self.handed

    def write(self, text: str) -> None:
        """Take the next piece of the answer."""
        self.messages.write(text)
        if self.begun_at is None and text.strip():
            self._time("first_token", timed.llm_ttft, "llm first token")
            self.begun_at = asyncio.get_running_loop().time()
            self.edge.waiting.append(
                StartAnswerCommand(
                    device=self._session.device,
                    session=self._session.id,
                    turn=self.utterance.turn,
                    traceparent=spans.current().traceparent,
                    agent=self.agent,
                )
            )
        for piece in self._splitter.feed(text):
            self._add(piece)

    def flush(self) -> None:
        """End a message of the model: cut the rest of its text."""
        for piece in self._splitter.flush():
            self._add(piece)
        self.messages.end_message()

    async def add_message(self, text: str, *, repeated: bool = False) -> None:
        """Take a whole message that does not come from the model now; the model's latency is not measured by it.

        Args:
            text: The message; other tasks run between the pieces of a long one.
            repeated: Whether it was written before this turn was taken up. An edge skips what it has. A device that
                shows text could not: it gets no piece twice and may miss one, but gets the whole answer at the end.
        """
        if text:
            self.stages.stop()
        self.messages.repeated, loop_yield = repeated, LoopYield(PIECE_CHARACTERS)
        for part in cut_text(text):
            self.write(part)
            await loop_yield.spend(len(part))
        self.flush()
        self.messages.repeated = False

    def set_language(self, language: str) -> None:
        """Set the language from the next sentence on; an empty one changes nothing."""
        if language:
            self.utterance = replace(self.utterance, language=language)

    async def hand_over(self) -> None:
        """Send the waiting sentences to the edge and the device.

        The edge of a spoken question has begun the answer already, so its beginning goes with the first sentence.

        Raises:
            Fenced: The lease may have ended.
            Unavailable: Redis is away; the sentences go on waiting.
        """
        if not self.edge.waiting:
            return
        due = self.waits or self.utterance.typed
        if due:
            await self.edge.send()
        self.messages.send()
        if due:
            await self._note_handed_over()

    def count_posted(self, words: Words) -> None:
        """Count the sentences that an edge may have been sent with what `EdgeOutput.post` returned."""
        if words != NO_POST:
            self.handed = max(self.handed, self._written)

    def close(self) -> None:
        """Cut the rest of the text; what waits ends with the end of the answer."""
        self.flush()
        self.edge.end(self._written)

    async def end(self) -> None:
        """Send the waiting sentences, and end the answer.

        Raises:
            Fenced: The lease may have ended.
            Unavailable: Redis or the broker is away; a retry is safe.
            Overloaded: The broker does not keep up; a retry is safe.
        """
        self.close()
        await self.edge.send()
        self.messages.end()
        await self._note_handed_over()

    async def abort(self) -> None:
        """Drop the waiting sentences, and end the answer."""
        self.edge.clear()
        self.messages.abort()
        self.edge.end(self.handed)
        await self.edge.send()
        self.edge.clear()

    async def _note_handed_over(self) -> None:
        """Count what the edge has, and then show it: a turn that is cancelled meanwhile must know how far it got."""
        if self.waits:
            log.debug("sentence handed over", extra={"index": self._written - 1})
        has = tuple(self.edge.waiting)
        self.edge.clear()
        self.handed = max(self.handed, self._written)
        await self.messages.show(has)

    def _add(self, piece: str) -> None:
        text = speakable(piece)
        self.messages.cut(piece)
        if self._emotion is None:
            self._emotion = emotion_of(piece) or "neutral"
        if not text:
            return
        if self._written == 0:
            self._time("first_sentence", timed.llm_ttfs, "first sentence")
        if self._written >= self.handed:
            self.edge.waiting.append(self._sentence(text))
        self._written += 1

    def _sentence(self, text: str) -> SpeakSentenceCommand:
        emotion, self._emotion = self._emotion or "", ""
        return SpeakSentenceCommand(
            device=self._session.device,
            session=self._session.id,
            turn=self.utterance.turn,
            index=self._written,
            text=text,
            language=self.utterance.language,
            emotion=emotion,
            agent=self.agent,
        )

    def _time(self, stage: str, metric: HistogramMetric, what: str) -> None:
        seconds = self.stages.note(stage)
        if seconds is not None:
            metric.observe(seconds)
            log.info(what, extra={"seconds": seconds})

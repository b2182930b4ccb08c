"""What a turn says: the model's text, cut into sentences, cleaned, and handed to the session's edge, if there is one.

Devices that show text are sent it at the same moments (`fleet.roles.worker.turns.messages`).
"""

import asyncio
import logging

from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.core.text.emotion import emotion_of
from fleet.core.text.pieces import PIECE_CHARACTERS, cut_text
from fleet.core.text.sentences import SentenceSplitter
from fleet.core.text.speakable import speakable
from fleet.ground.loop_yield import LoopYield
from fleet.ground.metrics import turns as timed
from fleet.ground.metrics.histogram import HistogramMetric
from fleet.ground.tracing import spans
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.turns.messages import ScreenMessages
from fleet.wire.edge_messages import (
    EndAnswerCommand,
    SpeakSentenceCommand,
    StartAnswerCommand,
    TurnProgressCommand,
    UtteranceEvent,
)

log = logging.getLogger(__name__)


class AnswerSpeech:
    """The spoken side of one turn.

    What is written waits until it is handed over, so that it can be written down first: whoever takes the turn up then
    says the same words under the same numbers, and the edge leaves out those that it has.

    Args:
        shard: Reaches a device that shows text.
        inboxes: Reach the edge.
        session: Whose edge speaks.
        heard: What is answered; its turn and, until `speak`, its language are the speech's.
        handed: How many sentences the edge was given already, before the turn was taken up.
    """

    def __init__(
        self, shard: Shard, inboxes: Inboxes, session: SessionRecord, heard: UtteranceEvent, handed: int = 0
    ) -> None:
        self._inboxes = inboxes
        self._session = session
        self.heard = heard
        """What is answered; its language is that of the speech."""
        self.messages = ScreenMessages(shard, session)
        """The written side: also all that was said, and what the model thinks."""
        self._splitter = SentenceSplitter()
        self._clock = asyncio.get_running_loop().time
        self._began: float | None = self._clock()
        self.begun_at: float | None = None
        """When speech was announced to the edge, on the loop's clock; None before."""
        self._emotion: str | None = "" if handed else None
        """The face, until the edge is given it; None until it is known."""
        self._written = 0
        self.handed = handed
        """How many sentences were handed over."""
        self._waiting: list[StartAnswerCommand | SpeakSentenceCommand] = []

    @property
    def waits(self) -> bool:
        """Whether there are sentences to hand over."""
        return self._written > self.handed

    def write(self, text: str) -> None:
        """Take the next piece of the answer."""
        self.messages.write(text)
        if self.begun_at is None and text.strip():
            self._time(timed.llm_ttft, "llm first token")
            self.begun_at = self._clock()
            self._waiting.append(
                StartAnswerCommand(
                    device=self._session.device,
                    session=self._session.id,
                    turn=self.heard.turn,
                    traceparent=spans.current().traceparent,
                )
            )
        for piece in self._splitter.feed(text):
            self._add(piece)

    def flush(self) -> None:
        """Take what was written as a whole message of the model."""
        for piece in self._splitter.flush():
            self._add(piece)
        self.messages.part()

    async def interject(self, text: str, *, repeated: bool = False) -> None:
        """Take a whole message that no model writes now, and that says nothing of how long one takes.

        Args:
            text: The message; other tasks run between the pieces of a long one.
            repeated: Whether it was written before this turn was taken up. An edge leaves out what it has. A device
                that shows text could not: it gets no piece twice, and may miss one, but the whole answer in the end.
        """
        if text:
            self._began = None
        self.messages.repeated, loop_yield = repeated, LoopYield(PIECE_CHARACTERS)
        for part in cut_text(text):
            self.write(part)
            await loop_yield.spend(len(part))
        self.flush()
        self.messages.repeated = False

    def speak(self, language: str) -> None:
        """Speak so from the next sentence on, whatever language the user speaks; an empty one changes nothing."""
        if language:
            self.heard = self.heard.model_copy(update={"language": language})

    async def hand_over(self) -> None:
        """Give edge and device what waits.

        Raises:
            Fenced: The lease may have ended.
            Unavailable: Redis is away; what waits is kept.
        """
        if self._waiting:
            if self._session.edge:
                await self._inboxes.to_edge(self._session.edge, *self._waiting)
            self.messages.send()
            self._handed_over()

    async def stay(self) -> None:
        """Tell the edge that the turn goes on, though there is nothing to say yet."""
        await self._send(
            TurnProgressCommand(device=self._session.device, session=self._session.id, turn=self.heard.turn)
        )

    async def end(self) -> None:
        """Give edge and device what waits, and say that nothing more will come.

        Raises:
            Fenced: The lease may have ended.
            Unavailable: Redis or the broker is away; it can be done again.
            Overloaded: The same.
        """
        self.flush()
        ended = EndAnswerCommand(
            device=self._session.device, session=self._session.id, turn=self.heard.turn, index=self._written
        )
        await self._send(*self._waiting, ended)
        self.messages.end()
        self._handed_over()

    async def leave(self) -> None:
        """Say that nothing more will come; what waits is dropped."""
        self._waiting.clear()
        self.messages.leave()
        ended = EndAnswerCommand(
            device=self._session.device, session=self._session.id, turn=self.heard.turn, index=self.handed
        )
        await self._send(ended)

    def _handed_over(self) -> None:
        if self.waits:
            log.debug("sentence handed over", extra={"index": self._written - 1})
        self._waiting.clear()
        self.handed = max(self.handed, self._written)

    def _add(self, piece: str) -> None:
        text = speakable(piece)
        self.messages.cut(piece)
        if self._emotion is None:
            self._emotion = emotion_of(piece) or "neutral"
        if not text:
            return
        if self._written == 0:
            self._time(timed.llm_ttfs, "first sentence")
        if self._written >= self.handed:
            self._waiting.append(self._sentence(text))
        self._written += 1

    def _sentence(self, text: str) -> SpeakSentenceCommand:
        emotion, self._emotion = self._emotion or "", ""
        return SpeakSentenceCommand(
            device=self._session.device,
            session=self._session.id,
            turn=self.heard.turn,
            index=self._written,
            text=text,
            language=self.heard.language,
            emotion=emotion,
        )

    async def _send(
        self, *commands: StartAnswerCommand | SpeakSentenceCommand | EndAnswerCommand | TurnProgressCommand
    ) -> None:
        if self._session.edge:
            await self._inboxes.to_edge(self._session.edge, *commands)

    def _time(self, metric: HistogramMetric, what: str) -> None:
        if self._began is not None:
            seconds = round(self._clock() - self._began, 3)
            metric.observe(seconds)
            log.info(what, extra={"seconds": seconds})

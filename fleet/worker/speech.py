"""What a turn says: the model's text, cut into sentences, cleaned, and handed to the session's edge."""

import asyncio
import logging
from contextlib import suppress

from fleet.core.emotion import emotion_of
from fleet.core.sentences import SentenceSplitter
from fleet.core.speakable import speakable
from fleet.errors import Overloaded, Unavailable
from fleet.store.mailbox import Mailboxes
from fleet.store.sessions import Session
from fleet.wire.mail import SentenceReady, SpeechBegun, SpeechEnded, TurnWorking, UtteranceHeard
from fleet.wire.words import Mood
from fleet.worker.shard import Shard

log = logging.getLogger(__name__)


class Speech:
    """The spoken side of one turn.

    What is written waits until it is handed over, so that it can be written down first: whoever takes the turn up then
    says the same words under the same numbers, and the edge leaves out those that it has.

    Args:
        shard: Tells the device its mood.
        mailboxes: Reach the edge.
        session: Whose edge speaks.
        heard: What is answered; its turn and its language are the speech's.
        handed: How many sentences the edge was given already, before the turn was taken up.
    """

    def __init__(
        self, shard: Shard, mailboxes: Mailboxes, session: Session, heard: UtteranceHeard, handed: int = 0
    ) -> None:
        self._shard = shard
        self._mailboxes = mailboxes
        self._session = session
        self._heard = heard
        self._splitter = SentenceSplitter()
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self.begun_at: float | None = None
        """When the edge was told that speech begins, on the loop's clock; None before."""
        self._mood_told = handed > 0
        self._written = 0
        self.handed = handed
        """How many sentences were handed over."""
        self._waiting: list[SpeechBegun | SentenceReady] = []

    @property
    def waits(self) -> bool:
        """Whether there are sentences to hand over."""
        return self._written > self.handed

    def write(self, text: str) -> None:
        """Take the next piece of the answer."""
        if self.begun_at is None and text.strip():
            log.info("llm first token", extra={"seconds": self._since()})
            self.begun_at = self._clock()
            self._waiting.append(
                SpeechBegun(device=self._session.device, session=self._session.id, turn=self._heard.turn)
            )
        for piece in self._splitter.feed(text):
            self._add(piece)

    def flush(self) -> None:
        """Take what was written as a whole message of the model."""
        for piece in self._splitter.flush():
            self._add(piece)

    async def hand_over(self) -> None:
        """Give the edge what waits.

        Raises:
            Unavailable: Redis is away; what waits is kept.
        """
        if self._waiting:
            await self._send(*self._waiting)
            self._handed_over()

    async def stay(self) -> None:
        """Tell the edge that the turn goes on, though there is nothing to say yet."""
        await self._send(TurnWorking(device=self._session.device, session=self._session.id, turn=self._heard.turn))

    async def end(self) -> None:
        """Give the edge what waits, and say that nothing more will come."""
        self.flush()
        ended = SpeechEnded(
            device=self._session.device, session=self._session.id, turn=self._heard.turn, index=self._written
        )
        await self._send(*self._waiting, ended)
        self._handed_over()

    async def leave(self) -> None:
        """Say that nothing more will come; what waits is dropped."""
        self._waiting.clear()
        ended = SpeechEnded(
            device=self._session.device, session=self._session.id, turn=self._heard.turn, index=self.handed
        )
        await self._send(ended)

    def _handed_over(self) -> None:
        if self.waits:
            log.debug("sentence handed over", extra={"index": self._written - 1})
        self._waiting.clear()
        self.handed = max(self.handed, self._written)

    def _add(self, piece: str) -> None:
        text = speakable(piece)
        if not self._mood_told:
            self._mood_told = True
            with suppress(Unavailable, Overloaded):  # a face is not worth an answer
                self._shard.tell(self._session.device, Mood(self._session.id, emotion_of(piece) or "neutral"))
        if not text:
            return
        if self._written == 0:
            log.info("first sentence", extra={"seconds": self._since()})
        if self._written >= self.handed:
            self._waiting.append(self._sentence(text))
        self._written += 1

    def _sentence(self, text: str) -> SentenceReady:
        return SentenceReady(
            device=self._session.device,
            session=self._session.id,
            turn=self._heard.turn,
            index=self._written,
            text=text,
            language=self._heard.language,
        )

    async def _send(self, *mail: SpeechBegun | SentenceReady | SpeechEnded | TurnWorking) -> None:
        await self._mailboxes.to_edge(self._session.edge, *mail)

    def _since(self) -> float:
        return round(self._clock() - self._began, 3)

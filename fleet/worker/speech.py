"""What a turn says: the model's text, cut into sentences, cleaned, and handed to the session's edge."""

import asyncio
import logging
from contextlib import suppress

from fleet.core.emotion import emotion_of
from fleet.core.sentences import SentenceSplitter
from fleet.core.speakable import speakable
from fleet.errors import FleetError, Overloaded, Unavailable
from fleet.store.mailbox import Mailboxes
from fleet.store.sessions import Session
from fleet.wire.mail import SentenceReady, SpeechBegun, SpeechEnded, TurnWorking
from fleet.wire.words import Mood
from fleet.worker.shard import Shard

log = logging.getLogger(__name__)

_ABANDON_SECONDS = 1.0


class Speech:
    """The spoken side of one turn.

    Args:
        shard: Tells the device its mood.
        mailboxes: Reach the edge.
        session: Whose edge speaks.
        turn: The turn's id.
        language: ISO 639-1 code of the user's words, empty when unknown.
    """

    def __init__(self, shard: Shard, mailboxes: Mailboxes, session: Session, turn: str, language: str) -> None:
        self._shard = shard
        self._mailboxes = mailboxes
        self._session = session
        self._turn = turn
        self._language = language
        self._splitter = SentenceSplitter()
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self.begun_at: float | None = None
        """When the edge was told that speech begins, on the loop's clock; None before."""
        self._mood_told = False
        self._ended = False
        self.sentences = 0
        """How many were handed over."""

    async def write(self, text: str) -> None:
        """Take the next piece of the answer; speak what is complete."""
        if self.begun_at is None and text.strip():
            await self._begin()
        for piece in self._splitter.feed(text):
            await self._speak(piece)

    async def flush(self) -> None:
        """Speak what is left of one message of the model."""
        for piece in self._splitter.flush():
            await self._speak(piece)

    async def stay(self) -> None:
        """Tell the edge that the turn goes on, though there is nothing to say yet."""
        await self._send(TurnWorking(device=self._session.device, session=self._session.id, turn=self._turn))

    async def end(self) -> None:
        """Say that nothing more will come."""
        await self.flush()
        await self._end()

    async def abandon(self) -> None:
        """Say so if it was not said: an edge that waits for more would keep the device waiting too."""
        if self._ended:
            return
        try:
            async with asyncio.timeout(_ABANDON_SECONDS):
                await self._end()
        except (FleetError, TimeoutError) as error:
            log.warning("end of speech not delivered", extra={"reason": str(error) or "no answer in time"})

    async def _end(self) -> None:
        self._ended = True
        await self._send(
            SpeechEnded(device=self._session.device, session=self._session.id, turn=self._turn, index=self.sentences)
        )

    async def _begin(self) -> None:
        log.info("llm first token", extra={"seconds": self._since()})
        self.begun_at = self._clock()
        await self._send(SpeechBegun(device=self._session.device, session=self._session.id, turn=self._turn))

    async def _speak(self, piece: str) -> None:
        text = speakable(piece)
        if not self._mood_told:
            self._mood_told = True
            with suppress(Unavailable, Overloaded):  # a face is not worth an answer
                self._shard.tell(self._session.device, Mood(self._session.id, emotion_of(piece) or "neutral"))
        if not text:
            return
        if self.sentences == 0:
            log.info("first sentence", extra={"seconds": self._since()})
        sentence = SentenceReady(
            device=self._session.device,
            session=self._session.id,
            turn=self._turn,
            index=self.sentences,
            text=text,
            language=self._language,
        )
        self.sentences += 1
        await self._send(sentence)

    async def _send(self, mail: SpeechBegun | SentenceReady | SpeechEnded | TurnWorking) -> None:
        await self._mailboxes.to_edge(self._session.edge, mail)

    def _since(self) -> float:
        return round(self._clock() - self._began, 3)

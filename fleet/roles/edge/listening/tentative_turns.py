"""The turns that a session's shard prepares while it is not certain that their utterance is over."""

import logging
from dataclasses import dataclass
from uuid import uuid4

from fleet.core.ports import Transcript
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.prepared_sentence import PreparedSentence
from fleet.wire.edge_messages import PrepareSentenceCommand, UtteranceTentativeEvent, UtteranceWithdrawnEvent

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TentativeTurn:
    """One of them."""

    id: str
    text: str
    sentence: PreparedSentence | None = None
    """The answer's first sentence, as soon as the shard has it."""


class TentativeTurns:
    """At most one turn that may still be withdrawn, and one that waits for its transcript after the commit.

    Args:
        transport: Names the session.
        services: Of the edge.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices) -> None:
        self._transport = transport
        self._services = services
        self._committed: TentativeTurn | None = None
        self.turn: TentativeTurn | None = None
        """The one that may still be withdrawn."""

    def begin(self, transcript: Transcript) -> None:
        """Ask the shard to prepare an answer."""
        opened = self._transport.opened
        turn = self.turn = TentativeTurn(uuid4().hex, transcript.text.strip())
        event = UtteranceTentativeEvent(
            device=opened.device,
            session=opened.session,
            turn=turn.id,
            text=turn.text,
            language=transcript.language,
        )
        self._services.outbox.put(opened.shard, event)
        log.debug("answer prepared", extra={"turn": turn.id})

    def withdraw(self) -> None:
        """Tell the shard that the user went on."""
        turn, self.turn = self.turn, None
        self._discard(turn)

    def commit(self) -> None:
        """Note that the utterance is over."""
        self._discard(self._committed)
        self._committed, self.turn = self.turn, None

    def take(self, text: str) -> TentativeTurn | None:
        """Return the turn that was prepared for a committed text; withdraw one that was prepared for another."""
        turn, self._committed = self._committed, None
        if turn is None or turn.text == text:
            return turn
        self._discard(turn)
        return None

    def prepare(self, command: PrepareSentenceCommand) -> None:
        """Synthesise the first sentence of an answer."""
        for turn in (self.turn, self._committed):
            if turn and turn.id == command.turn and turn.sentence is None:
                turn.sentence = PreparedSentence(
                    command, self._services, self._transport.agent, self._transport.downlink
                )

    def _discard(self, turn: TentativeTurn | None) -> None:
        if turn is None:
            return
        if turn.sentence:
            turn.sentence.close()
        opened = self._transport.opened
        self._services.outbox.put(
            opened.shard, UtteranceWithdrawnEvent(device=opened.device, session=opened.session, turn=turn.id)
        )
        log.debug("answer withdrawn", extra={"turn": turn.id})

"""The way of what a user said or typed to the session's shard."""

import logging
from collections.abc import Callable
from typing import Literal

from fleet.ground.errors import FleetError
from fleet.ground.metrics import turns as timed
from fleet.ground.tracing import turns as traced
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.turns import AwaitedTurn, SessionTurns
from fleet.roles.edge.transport.downlink import DownlinkTransport
from fleet.wire.edge_messages import UtteranceEvent
from fleet.wire.messages import TranscriptCommand

log = logging.getLogger(__name__)


class UtteranceSender:
    """Asks a session's shard.

    Args:
        line: To the device.
        services: Of the edge.
        turns: Of the session.
        on_failure: Called when the shard cannot be asked.
    """

    def __init__(
        self, line: DownlinkTransport, services: EdgeServices, turns: SessionTurns, on_failure: Callable[[], None]
    ) -> None:
        self._line = line
        self._services = services
        self._turns = turns
        self._on_failure = on_failure

    async def ask(self, turn: AwaitedTurn, text: str, language: str, outcome: Literal["understood", "typed"]) -> None:
        """Let the device show a text, and begin a turn with it.

        Args:
            turn: The turn's name and times.
            text: What was said or typed.
            language: ISO 639-1 code of what was heard, empty when unknown.
            outcome: What is counted when the shard has it.
        """
        opened = self._line.opened
        self._turns.expect(turn)
        self._line.order(TranscriptCommand(opened.session, text))
        heard = UtteranceEvent(
            device=opened.device,
            session=opened.session,
            turn=turn.id,
            text=text,
            language=language,
            traceparent=traced.adopt(turn.id),
        )
        try:
            await self._services.post(opened.shard, heard)
        except FleetError as error:
            log.warning("utterance not delivered", extra={"reason": str(error), "kind": type(error).__name__})
            timed.utterances.add("undelivered")
            # It may have been delivered all the same: one apology and no answer.
            self._turns.leave()
            self._on_failure()
        else:
            timed.utterances.add(outcome)

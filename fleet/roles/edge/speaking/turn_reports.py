"""What became of a session's turns, told to its shard."""

import logging
from typing import Final, Literal

from fleet.ground.metrics import turns as timed
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.speaking.speech import SpokenAnswer
from fleet.wire.edge_messages import AnswerDoneEvent, AnswerInterruptedEvent, EdgeEvent, UtteranceWithdrawnEvent

log = logging.getLogger(__name__)

_REASONS: Final = {"no_audio_path": "the device sends no audio", "no_worker": "nothing came from the shard"}


class TurnReports:
    """Puts the reports of one session into the outbox, which bounds them.

    Args:
        transport: Names the session.
        services: Of the edge.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices) -> None:
        self._transport = transport
        self._opened = transport.opened
        self._frame_ms = transport.downlink.frame_ms
        self._services = services

    def done(self, answer: SpokenAnswer) -> None:
        """The answer was spoken to its end."""
        self._put(
            AnswerDoneEvent(
                device=self._opened.device,
                session=self._opened.session,
                turn=answer.turn,
                first_audio_ms=answer.first_audio_ms,
                spoken_ms=self._spoken_ms(answer),
            )
        )

    def cut(self, turn: str, spoken: int, answer: SpokenAnswer | None) -> None:
        """The answer was interrupted after so many sentences had begun, or before it began."""
        self._put(
            AnswerInterruptedEvent(
                device=self._opened.device,
                session=self._opened.session,
                turn=turn,
                spoken=spoken,
                first_audio_ms=answer.first_audio_ms if answer else 0,
                spoken_ms=self._spoken_ms(answer) if answer else 0,
            )
        )

    def withdrawn(self, turn: str, spoken: int) -> None:
        """A later turn has the words of this one, because its user went on; so many sentences had begun."""
        opened = self._opened
        self._put(UtteranceWithdrawnEvent(device=opened.device, session=opened.session, turn=turn, spoken=spoken))

    def given_up(self, turn: str, why: Literal["no_audio_path", "no_worker"]) -> None:
        """The edge does not wait for a turn any more; this is only counted and logged. An empty turn has no name."""
        timed.given_up.add(why)
        with self._transport.fields(turn):
            log.warning("turn given up", extra={"reason": _REASONS[why]})

    def _spoken_ms(self, answer: SpokenAnswer) -> int:
        return answer.playout.queue.sent * self._frame_ms

    def _put(self, event: EdgeEvent) -> None:
        self._services.outbox.put(self._opened.shard, event)

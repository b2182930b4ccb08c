"""What became of a session's turns, told to its shard."""

from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.downlink import DownlinkTransport
from fleet.wire.edge_messages import AnswerDoneEvent, AnswerInterruptedEvent, EdgeEvent, UtteranceWithdrawnEvent


class TurnReports:
    """Puts the reports of one session into the outbox, which bounds them.

    Args:
        transport: Names the session.
        services: Of the edge.
    """

    def __init__(self, transport: DownlinkTransport, services: EdgeServices) -> None:
        self._opened = transport.opened
        self._services = services

    def done(self, turn: str) -> None:
        """The answer was spoken to its end."""
        self._put(AnswerDoneEvent(device=self._opened.device, session=self._opened.session, turn=turn))

    def cut(self, turn: str, spoken: int) -> None:
        """The answer was interrupted after so many sentences had begun."""
        device, session = self._opened.device, self._opened.session
        self._put(AnswerInterruptedEvent(device=device, session=session, turn=turn, spoken=spoken))

    def withdrawn(self, turn: str) -> None:
        """A later turn has the words of this one, because its user went on."""
        self._put(UtteranceWithdrawnEvent(device=self._opened.device, session=self._opened.session, turn=turn))

    def _put(self, event: EdgeEvent) -> None:
        self._services.outbox.put(self._opened.shard, event)

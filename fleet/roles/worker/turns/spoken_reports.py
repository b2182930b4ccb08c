"""The reports of edges that an answer was spoken, or interrupted, become events."""

import logging
from typing import Final

from fleet.adapters.redis.sessions.spoken_answers import SpokenAnswers
from fleet.adapters.redis.shards.inbox import StreamEntry
from fleet.roles.worker.announcements.pauses import AnswerPauses
from fleet.roles.worker.ownership.shard import Shard
from fleet.wire.edge_messages import AnswerDoneEvent, AnswerInterruptedEvent
from fleet.wire.fleet_events import SpokenData

log = logging.getLogger(__name__)

UNHEARD_MS: Final = 1_500
"""An answer that is interrupted in its first sentence is not heard if less than this was sent: devices queue so much.
"""


class SpokenReports:
    """Takes the reports.

    Args:
        answers: Writes their events.
    """

    def __init__(self, answers: SpokenAnswers) -> None:
        self._answers = answers
        self.pauses = AnswerPauses()
        """Knows which answers are over."""

    async def take(self, shard: Shard, entry: StreamEntry, answer: AnswerDoneEvent | AnswerInterruptedEvent) -> None:
        """Write the event of a spoken answer, and discard the entry that reports it."""
        log.debug("speech done", extra={"turn": answer.turn})
        spoken = SpokenData(
            turn=answer.turn,
            session=answer.session,
            first_audio_ms=answer.first_audio_ms,
            spoken_ms=answer.spoken_ms,
            interrupted=isinstance(answer, AnswerInterruptedEvent),
        )
        if isinstance(answer, AnswerInterruptedEvent):
            heard = answer.spoken > 1 or answer.spoken_ms >= UNHEARD_MS
            self.pauses.end(answer.device, answer.turn, "cut_short", answer.spoken if heard else 0)
        else:
            self.pauses.end(answer.device, answer.turn, "spoken")
        await self._answers.note(shard.owner, answer.device, entry, spoken)

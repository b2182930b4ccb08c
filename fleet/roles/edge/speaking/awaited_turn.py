"""A turn that an edge awaits from its shard, and the message that asks for it."""

from dataclasses import dataclass

from fleet.ground.tracing import turns as traced
from fleet.roles.edge.speaking.heard_answer import HeardAnswer
from fleet.wire.edge_messages import OpenSessionCommand, UtteranceEvent


@dataclass(slots=True)
class AwaitedTurn:
    """A turn that a shard works on. Times are on the loop's clock."""

    id: str
    progress_at: float
    """When the shard last sent a command for it."""
    speech_ended_at: float | None = None
    """When the user stopped speaking; None for a turn that the server began."""
    language: str = ""
    """ISO 639-1 code."""
    speech_ms: float = 0.0
    """Length of the user's speech."""
    speech_began_at: float | None = None
    """The earliest time at which the user began to speak; None if nobody spoke."""


def utterance_of(
    opened: OpenSessionCommand, turn: AwaitedTurn, text: str, language: str, before: HeardAnswer
) -> UtteranceEvent:
    """Return what asks the shard for a turn.

    Args:
        opened: The session.
        turn: Of the utterance.
        text: What was said or typed.
        language: ISO 639-1 code of the speech, empty if unknown.
        before: The last answer that the user has heard.
    """
    heard, pause_ms = before.before(turn.speech_began_at)
    return UtteranceEvent(
        device=opened.device,
        session=opened.session,
        turn=turn.id,
        text=text,
        language=language,
        speech_ms=round(turn.speech_ms),
        heard_ms=round(1000 * (turn.progress_at - turn.speech_ended_at)) if turn.speech_ended_at else 0,
        heard=heard,
        pause_ms=pause_ms,
        traceparent=traced.adopt(turn.id),
    )

"""The stages of one turn in its worker: how long each took."""

import asyncio

from fleet.adapters.redis.sessions.turn_data import TurnFacts
from fleet.wire.edge_messages import UtteranceEvent


class TurnStages:
    """Measures from its creation, and keeps the times for the event of the turn's end.

    Args:
        session: Of the turn; may be empty.
        heard: What the turn answers.
    """

    def __init__(self, session: str, heard: UtteranceEvent) -> None:
        self._session, self._heard = session, heard
        self._clock = asyncio.get_running_loop().time
        self._began: float | None = self._clock()
        self._ms = {"heard": heard.heard_ms} if heard.heard_ms else {}
        self.agent = ""
        """Name of the agent that answers."""

    def stop(self) -> None:
        """Measure no more: the text that comes does not come from the model now."""
        self._began = None

    def note(self, stage: str) -> float | None:
        """Note that a stage is over; return its seconds."""
        if self._began is None:
            return None
        seconds = round(self._clock() - self._began, 3)
        self._ms[stage] = round(seconds * 1000)
        return seconds

    def facts(self, language: str) -> TurnFacts:
        """Return what the event of the turn's end says of it; the text is written now.

        Args:
            language: Of the speech.
        """
        self.note("written")
        return TurnFacts(
            session=self._session,
            agent=self.agent,
            language=language,
            typed=self._heard.typed,
            speech_ms=self._heard.speech_ms,
            stages=self._ms,
        )

"""The answer that the user has heard last: a yes counts only for a question that was heard (`fleet.core.consent`)."""

from typing import Final

from fleet.roles.edge.speaking.speech import SpokenAnswer

EARLY_SECONDS: Final = 0.8
"""An utterance's audio begins up to 0.7 s before its first word, and people answer before the last syllable ends."""


class HeardAnswer:
    """The last answer of one session that was spoken to its end."""

    def __init__(self) -> None:
        self._turn = ""
        self._at = 0.0

    def note(self, speech: SpokenAnswer, now: float) -> None:
        """Note that an answer has ended; one that was not heard whole takes the place of the one before, too."""
        self._turn, self._at = speech.turn if speech.whole else "", now

    def before(self, began_at: float | None) -> tuple[str, int]:
        """Return the turn of the answer before an utterance, and the milliseconds between them.

        Args:
            began_at: When the utterance began, on the loop's clock; None if nobody spoke.

        Returns:
            An empty turn if there is none, or if the user spoke over it.
        """
        if began_at is None or not self._turn or began_at < self._at - EARLY_SECONDS:
            return "", 0
        return self._turn, round(max(began_at - self._at, 0.0) * 1000)

"""How much audio of a sentence must be ready before its playback starts, so that it does not stop in the middle.

On a busy machine, or when several sentences take turns, synthesis of a piece may take longer than playback of the one
before it. Then the sentence starts later, with more audio ready, instead of pausing after each piece.
"""

from collections.abc import Sequence
from typing import Final

_NEWEST_SHARE: Final = 0.4
"""Weight of the newest piece in the averages; it is high because load changes within seconds."""
_SLACK_SECONDS: Final = 1.5
"""A piece may be late by this much: pieces end with punctuation, where a speaker pauses too. The user hears the first
words earlier in return. Playout never sends more than two seconds of silence in a sentence (`fleet.core.playout`)."""


class PrebufferEstimator:
    """Measures how long a voice needs for a character, and how long a character plays; both as moving averages."""

    def __init__(self) -> None:
        self._making: float | None = None
        self._playing = 0.0

    def record(self, characters: int, making: float, playing: float) -> None:
        """Record one piece.

        Args:
            characters: Length of its text.
            making: Seconds from the request to its audio.
            playing: Seconds of its audio.
        """
        share = 1.0 if self._making is None else _NEWEST_SHARE
        known = self._making or 0.0
        self._making = known + share * (making / characters - known)
        self._playing += share * (playing / characters - self._playing)

    def can_start(self, ready: float, left: Sequence[int]) -> bool:
        """Whether playback of the ready audio lasts until each further piece is ready.

        Args:
            ready: Seconds of audio.
            left: Characters of each further piece, in order.
        """
        made, played = 0.0, ready + _SLACK_SECONDS
        for characters in left:
            made += (self._making or 0.0) * characters
            if made > played:
                return False
            played += self._playing * characters
        return True

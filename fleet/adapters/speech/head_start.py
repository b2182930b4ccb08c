"""How much of a sentence has to be there before it may begin, so that it does not run dry in its middle.

On a busy machine, or when several sentences take turns, a piece of a sentence takes longer than the one before it
plays. Then the sentence begins later, with more of it ready, instead of pausing after each piece.
"""

from collections.abc import Sequence
from typing import Final

_NEWEST_SHARE: Final = 0.4
"""Weight of the newest piece in the averages: load comes and goes within seconds."""
_SLACK_SECONDS: Final = 1.5
"""By this much pieces may be late. They end with punctuation, where a speaker pauses too, and who waits hears the first
words at once; more than two seconds of silence are never sent in a sentence (`fleet.core.playout`)."""


class HeadStart:
    """Learns how fast a voice makes pieces and how long they play, both by their characters."""

    def __init__(self) -> None:
        self._making: float | None = None
        self._playing = 0.0

    def learn(self, characters: int, making: float, playing: float) -> None:
        """Take one piece: seconds from the wish to its audio, and seconds of its audio."""
        share = 1.0 if self._making is None else _NEWEST_SHARE
        known = self._making or 0.0
        self._making = known + share * (making / characters - known)
        self._playing += share * (playing / characters - self._playing)

    def suffices(self, ready: float, left: Sequence[int]) -> bool:
        """Whether audio of `ready` seconds lasts until each further piece, of so many characters, is there."""
        made, played = 0.0, ready + _SLACK_SECONDS
        for characters in left:
            made += (self._making or 0.0) * characters
            if made > played:
                return False
            played += self._playing * characters
        return True

"""Whether an utterance is over, decided from the length of its last silence, how it sounded, and its text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from fleet.core.ports import UNDECIDED, Transcript
from fleet.core.text.completeness import TextVerdict, has_end, judge_text

Decision = Literal["wait", "tentative", "commit", "keep"]
"""`tentative`: prepare the answer and send none of it. `keep`: only a filler, it belongs to what follows."""

GROWTH_MS = 200.0
"""By how much the waits of a session grow when its user goes on although an answer was being prepared."""
MOST_GROWTH_MS = 400.0
LATEST_MS = 4000.0
"""Silence that ends an utterance although there is no text yet; above the longest wait with its growth."""
MOST_UNMARKED = 2
"""After so many whole utterances without a mark at their end the recogniser is taken to write none."""
MOST_TENTATIVE = 2
"""Answers that are prepared for one utterance; each may be a wasted request to the model."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a language's probabilities mean (docs/adr/0035-ends-of-turns.md has the measurements)."""

    finished: float
    """From this probability on the speaker sounds finished."""
    unfinished: float
    """Below this one the speaker sounds unfinished; between the two the sound does not decide."""
    confidence: float
    """Below this one the recogniser may have heard half a word."""
    at_once_ms: float
    """The shortest silence that ends an utterance."""


THRESHOLDS: Final[Mapping[str, Thresholds]] = {
    "en": Thresholds(0.975, 0.9, 0.85, 120.0),
    "zh": Thresholds(0.6, 0.5, 0.6, 420.0),
}
_OTHER: Final = Thresholds(0.95, 0.5, 0.0, 420.0)


class TurnEnd:
    """The end of the utterances of one session.

    Args:
        middle_ms: Silence that ends an utterance when the text is finished and the sound does not decide.
        longest_ms: Silence that ends one when the sound or the text is unfinished.
    """

    def __init__(self, middle_ms: float, longest_ms: float) -> None:
        self.set_waits(middle_ms, longest_ms)
        self._growth_ms = 0.0
        self._probability: float | None = None
        self._text: Transcript | None = None
        self._known = self._unjudged = False
        self._tentative = 0
        self._unmarked = 0

    def set_waits(self, middle_ms: float, longest_ms: float) -> None:
        """Change the waits from the next decision on; see the arguments of the class."""
        self._middle_ms = middle_ms
        self._longest_ms = max(longest_ms, middle_ms)

    def begin(self) -> None:
        """Begin the next utterance."""
        if self._text and self._text.text:
            self._unmarked = 0 if has_end(self._text.text) else self._unmarked + 1
        self.note_voice()
        self._tentative = 0

    def note_voice(self) -> None:
        """Forget the verdicts on the last pause: the user speaks."""
        self._probability = self._text = None
        self._known = self._unjudged = False

    def leave_unjudged(self) -> None:
        """Let silence alone end the utterance: there will be no verdicts on this pause."""
        self._unjudged = True

    def judge(self, probability: float | None) -> None:
        """Take how finished the user sounded, 0 to 1; None if that is not known."""
        self._probability = probability

    def read(self, text: Transcript | None) -> None:
        """Take what was recognised until the pause; None if recognition failed."""
        self._text, self._known = text, True

    def go_on(self) -> None:
        """Lengthen the waits of the session: the user went on after a decision other than `wait`."""
        self._growth_ms = min(self._growth_ms + GROWTH_MS, MOST_GROWTH_MS)

    def decide(self, silence_ms: float) -> Decision:
        """Return what to do now.

        While there is no text the utterance goes on, because nothing could be answered yet.

        Args:
            silence_ms: Time since the last speech.
        """
        if self._unjudged:
            return "commit" if silence_ms >= self._longest_ms + self._growth_ms else "wait"
        if not self._known:
            return "wait"
        verdict = self._verdict()
        if silence_ms >= self._wait_ms(verdict) + self._growth_ms:
            return "keep" if verdict == "filler" else "commit"
        # Most users go on after half a sentence; who does not is answered late anyway.
        late = silence_ms >= (self._middle_ms + self._longest_ms) / 2
        prepared = verdict == "finished" or (verdict == "unfinished" and late)
        if prepared and self._tentative < MOST_TENTATIVE:
            return "tentative"
        return "wait"

    def note_tentative(self) -> Transcript:
        """Count an answer that is prepared for the utterance; return the text that it answers."""
        self._tentative += 1
        return self._text or Transcript("")

    def _verdict(self) -> TextVerdict:
        text = self._text
        if text is None:
            return "finished"
        unsure = text.confidence is not None and text.confidence < self._marks.confidence
        verdict = judge_text(text.text, text.language)
        # Half a sentence mostly has no mark at its end; but some recognisers write none at all.
        unmarked = self._unmarked < MOST_UNMARKED and not has_end(text.text)
        return "unfinished" if verdict == "finished" and (unsure or unmarked) else verdict

    @property
    def _marks(self) -> Thresholds:
        return THRESHOLDS.get(self._text.language, _OTHER) if self._text else _OTHER

    def _wait_ms(self, verdict: TextVerdict) -> float:
        marks, sound = self._marks, self._probability
        if sound in (None, UNDECIDED) or self._text is None or verdict == "filler":
            return self._middle_ms
        if verdict != "finished" or sound < marks.unfinished:
            return self._longest_ms
        return marks.at_once_ms if sound >= marks.finished else self._middle_ms

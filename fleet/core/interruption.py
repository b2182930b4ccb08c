"""Whether speech over an answer interrupts it: decided from its text, its voice and the time.

The answer is held while the user speaks over it. What then decides is text: a listener's signal ("uh-huh", 嗯), a noise
without words, or the answer's own words in the microphone let the answer go on. The words are data
(`interruption.toml`).
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from fleet.core.own_words import LEAST_WEIGHT, WORD, Tokens, is_own, split, weigh

Verdict = Literal["keyword", "words", "voice", "noise", "backchannel", "echo", "few_words", "undecided"]
"""Why the answer is interrupted (the first three) or goes on.

`voice`: the user goes on speaking and there is no text in time. `undecided`: the voice has ended and there is no text
in time; the text still decides when it comes. `few_words`: too little for the sensitivity.
"""
INTERRUPTING: Final[frozenset[Verdict]] = frozenset(("keyword", "words", "voice"))
Sensitivity = Literal["off", "low", "normal", "high"]

DECIDE_SECONDS: Final = 0.9
"""Longest time that an answer is held."""
QUIET_SECONDS: Final = 0.15
"""Time without a frame of speech after which the voice has ended for now; frames last up to 60 ms."""
FIRST_TEXT_SECONDS: Final = 0.4
"""From the begin of the hold to the first recognition of a voice that goes on: about 0.7 s of speech, so that it is
more than the backchannel that it may begin with."""
MOST_TEXTS: Final = 4
"""Recognitions during one hold."""
SHORT_MS: Final = 600.0
"""Speech below which a sound is short: one or two syllables, which recognition takes for all kinds of words. It is then
a backchannel, unless its text is a keyword, begins as short commands and questions do, or has `LEAST_WEIGHT`. Measured
on synthetic speech: 28 backchannels of one or two syllables have 180 to 600 ms, commands of two syllables 600 and more.
"""
_WORDS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


class OverlapRules:
    """The rules for speech over an answer.

    Args:
        sensitivity: How much is needed to interrupt.
        further: Keywords of the operator, besides the built-in ones.
    """

    def __init__(self, sensitivity: Sensitivity, further: Iterable[str] = ()) -> None:
        self.sensitivity = sensitivity
        self._backchannels = _phrases((*_WORDS["backchannels"].values(), _WORDS["mumbles"]["all"]))
        self._short = _phrases(_WORDS["short"].values())
        self._keywords = _phrases((*_WORDS["keywords"].values(), further))

    def judge(self, text: str, said: Sequence[str], voiced_ms: float, *, ended: bool = True) -> Verdict:
        """Return what a text over an answer is.

        Args:
            text: As it was recognised, perhaps empty.
            said: The sentences of the answer that have begun.
            voiced_ms: Speech in it.
            ended: Whether the voice has ended; the begin of an echo is shorter than an echo must be.
        """
        words = split(text)
        if not words:
            return "noise"
        least = LEAST_WEIGHT if ended or words in self._keywords else 0.0
        if is_own(text, said, least):
            return "echo"
        if any(words[at : at + len(phrase)] == phrase for phrase in self._keywords for at in range(len(words))):
            return "keyword"
        if self._is_backchannel(words):
            return "backchannel"
        if self.sensitivity == "low":
            least = LEAST_WEIGHT
        elif any(words[: len(phrase)] == phrase for phrase in self._short):
            least = 0.0
        else:
            # Recognition takes a mumbled syllable for any single character.
            least = LEAST_WEIGHT if voiced_ms < SHORT_MS else WORD
        return "words" if weigh(words) >= least else "few_words"

    def _is_backchannel(self, words: Tokens) -> bool:
        """Whether the words are backchannels one after the other."""
        reached = {0}
        for at in range(len(words)):
            if at in reached:
                reached |= {at + len(one) for one in self._backchannels if words[at : at + len(one)] == one}
        return len(words) in reached


@dataclass(slots=True)
class HeldAnswer:
    """What is known of the speech over one held answer. Times are seconds on any steady clock."""

    rules: OverlapRules
    held_at: float
    voice_at: float
    """When the last frame of speech was heard."""
    texts: int = 0
    """Recognitions that were begun."""
    _verdict: Verdict | None = None
    _covered: float = 0.0

    def is_quiet(self, now: float) -> bool:
        """Whether the voice has ended for now."""
        return now - self.voice_at >= QUIET_SECONDS

    def wants_text(self, now: float) -> bool:
        """Whether to recognise now what was said so far, if no recognition runs."""
        if self.texts >= MOST_TEXTS or self._covered >= self.voice_at:
            return False
        return self.is_quiet(now) or now - self.held_at >= FIRST_TEXT_SECONDS

    def note_text(self, verdict: Verdict, taken_at: float) -> None:
        """Take the verdict on the text of the audio until `taken_at`."""
        self._verdict, self._covered = verdict, taken_at

    def decide(self, now: float) -> Verdict | None:
        """Return the verdict, None while there is none."""
        verdict = self._verdict
        if verdict in INTERRUPTING:
            return verdict
        if verdict and self.is_quiet(now) and self._covered >= self.voice_at:
            return verdict
        if now - self.held_at < DECIDE_SECONDS:
            return None
        cautious = self.is_quiet(now) or self.rules.sensitivity == "low"
        if verdict and (cautious or verdict != "few_words"):
            return verdict
        return "undecided" if cautious else "voice"


def _phrases(lists: Iterable[Iterable[str]]) -> frozenset[Tokens]:
    return frozenset(split(phrase) for phrases in lists for phrase in phrases) - {()}

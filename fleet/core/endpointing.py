"""When an utterance begins and ends, decided from a detector's speech probabilities."""

from collections import deque
from dataclasses import dataclass

START = 0.5
"""Probability from which a frame counts as speech."""
STAY = 0.35
"""Within an utterance, a frame below this probability counts as silence: weak endings of words stay inside."""
START_MS = 120.0
"""Speech that begins an utterance: less is a click or a cough."""
WINDOW_MS = 400.0
"""The time within which `START_MS` of speech must be heard."""
PREROLL_MS = 300.0
"""Audio kept from before the first speech frame: detectors miss the soft beginnings of words."""
LONGEST_MS = 60_000.0
"""An utterance is cut here, so that endless noise takes at most 2 MB of memory and gets an answer."""


@dataclass(frozen=True, slots=True)
class Started:
    """An utterance began; the last `back_ms` of audio, with the frame just heard, belong to it."""

    back_ms: float
    voiced_ms: float
    """How much of it is speech."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The speaker pauses and may have finished; comes once in each silence, before its `Ended`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The utterance is over after `silence_ms` without speech; `cut` when it was too long instead."""

    silence_ms: float
    cut: bool = False


class PauseFinder:
    """Finds the pauses in an utterance that the user ends (push-to-talk).

    Args:
        pause_ms: Silence that is a pause.
    """

    def __init__(self, pause_ms: float) -> None:
        self._pause_ms = pause_ms
        self._silence = 0.0

    def step(self, speech: float, ms: float) -> bool:
        """Take the next frame; return True once in each silence, when it has become a pause.

        Args:
            speech: The detector's probability, 0 to 1.
            ms: The frame's length.
        """
        before = self._silence
        self._silence = before + ms if speech < STAY else 0.0
        return before < self._pause_ms <= self._silence


class Endpointer:
    """Finds one utterance after another in a stream of frames.

    Args:
        endpoint_ms: Silence that ends an utterance.
        pause_ms: Silence that is a pause; from `endpoint_ms` on there are no pauses.
        preroll_ms: Audio in front of the first speech frame that belongs to an utterance.
    """

    __slots__ = ("_endpoint_ms", "_length", "_pause_ms", "_silence", "inside", "preroll_ms", "window")

    def __init__(self, endpoint_ms: float, pause_ms: float = LONGEST_MS, preroll_ms: float = PREROLL_MS) -> None:
        self._endpoint_ms = endpoint_ms
        self._pause_ms = pause_ms
        self.preroll_ms = preroll_ms
        self.window: deque[tuple[bool, float]] = deque()
        """Outside of an utterance: the frames since the first speech in the last `WINDOW_MS`, and whether each is
        speech."""
        self._length = 0.0
        """Of the utterance, or of the window."""
        self._silence = 0.0
        self.inside = False
        """Whether an utterance is under way."""

    @property
    def silence_ms(self) -> float:
        """Time since the last speech of the utterance that is under way."""
        return self._silence

    def reset(self) -> None:
        """Forget the frames so far."""
        self.window.clear()
        self._length = self._silence = 0.0
        self.inside = False

    def step(self, speech: float, ms: float) -> Started | Paused | Ended | None:
        """Take the next frame.

        Args:
            speech: The detector's probability, 0 to 1.
            ms: The frame's length.
        """
        if self.inside:
            return self._continue(speech, ms)
        # Silence after silence decides nothing.
        return self._wait(speech, ms) if speech >= START or self.window else None

    def _wait(self, speech: float, ms: float) -> Started | None:
        window, is_speech = self.window, speech >= START
        window.append((is_speech, ms))
        self._length += ms
        while window and not (window[0][0] and self._length - window[0][1] < WINDOW_MS):
            self._length -= window.popleft()[1]
        if not is_speech:
            return None
        voiced = sum(length for is_speech, length in window if is_speech)
        if voiced < START_MS:
            return None
        back = self._length + self.preroll_ms
        self.reset()
        self.inside, self._length = True, back
        return Started(back, voiced)

    def _continue(self, speech: float, ms: float) -> Paused | Ended | None:
        self._length += ms
        before = self._silence
        self._silence = self._silence + ms if speech < STAY else 0.0
        if self._silence >= self._endpoint_ms:
            ended = Ended(self._silence)
        elif self._length >= LONGEST_MS:
            ended = Ended(self._silence, cut=True)
        else:
            return Paused() if before < self._pause_ms <= self._silence else None
        self.reset()
        return ended

"""What the scripted models do in one scene: everything that belongs to one utterance of one device."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from fleet.workbench.conformance.steering.voice import MARKS

Arguments = Mapping[str, JsonValue] | str
"""Of a call; a string is sent as it is, valid JSON or not."""
Call = tuple[str, Arguments]
"""A tool's name and its arguments. Servers rename tools: of the offered ones that with the same letters is called."""

LONGEST_WAIT = 60.0
"""Seconds that a script may let anybody wait."""

_FAULT = re.compile(r"none|silent|status ([45]\d\d)|breaks off after (\d+)(?: pieces?)?")
_MENTION = re.compile(r"scene\W*([1-9]\d\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, understood; all None and False when there is none."""

    status: int | None = None
    breaks_after: int | None = None
    """Pieces of the answer after which the connection is cut."""
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """One answer of the chat model.

    `before` are the seconds until its first piece, `pace` those between pieces of about a word. `fault` is `none`,
    `silent`, `status 500` (or another one) or `breaks off after 3 pieces`.

    Raises:
        ValueError: A time is out of range, or the fault is unknown.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    before: float = 0.0
    pace: float = 0.0
    fault: str = "none"
    trouble: Fault = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (0 <= self.before <= LONGEST_WAIT and 0 <= self.pace <= LONGEST_WAIT):
            raise ValueError(f"a round's waits are 0 to {LONGEST_WAIT:g} s")
        object.__setattr__(self, "trouble", _understand(self.fault))


@dataclass(frozen=True, slots=True)
class Scene:
    """What is heard, thought and said.

    Args:
        mark: One of `MARKS`, carried by the sound.
        transcript: What recognition answers; the mark is put before it where it is missing.
        asr: `empty` answers that nothing was said, `error` with status 500, `silent` never.
        rounds: The answers of the chat model to the first, second, … request of a turn.
        voice: `error` answers with status 500, `silent` never, `slow` begins late and goes on in real time.
        reply_seconds: Length of a round's whole text when spoken; 60 ms a character without it.

    Raises:
        ValueError: There is no such mark.
    """

    mark: int
    transcript: str = ""
    asr: Literal["text", "empty", "error", "silent"] = "text"
    rounds: tuple[Round, ...] = ()
    voice: Literal["ok", "error", "silent", "slow"] = "ok"
    reply_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.mark not in MARKS:
            raise ValueError(f"there is no mark {self.mark}")

    @property
    def words(self) -> str:
        """The transcript with the mark in it."""
        if mentioned(self.transcript) == self.mark:
            return self.transcript
        return f"scene {self.mark}: {self.transcript}".rstrip(": ")

    def round(self, number: int) -> Round:
        """Return the answer to the request of this number, from 0; there is one beyond the script too."""
        if number < len(self.rounds):
            return self.rounds[number]
        state = "over" if self.rounds else "answered"
        return Round(f"Scene {self.mark} is {state} and there is nothing more to say in it.")


def answer(mark: int, text: str, *, transcript: str = "") -> Scene:
    """Return a scene with one answer; the mark is put before a text without it."""
    return Scene(mark, transcript, rounds=(Round(named(mark, text)),))


def calls(mark: int, name: str, arguments: Arguments, then: str = "done", *, transcript: str = "") -> Scene:
    """Return a scene in which the model calls a tool, and then answers."""
    return Scene(mark, transcript, rounds=(Round(calls=((name, arguments),)), Round(named(mark, then))))


def long_text(mark: int, sentences: int) -> str:
    """Return so many different sentences, each with the mark in it."""
    return " ".join(
        f"Scene {mark} goes on talking with its sentence {number} of {sentences}." for number in range(1, sentences + 1)
    )


def named(mark: int, text: str) -> str:
    """Return a text that contains its mark: servers cache the audio of phrases, also across scenes."""
    return text if str(mark) in text or not text.strip() else f"Scene {mark}: {text}"


def mentioned(text: str) -> int | None:
    """Return the mark in a text, even if its spaces and punctuation were removed."""
    found = _MENTION.search(text)
    return int(found[1]) if found else None


def letters(text: str) -> str:
    """Return what is left of a text however it was cleaned: its letters and digits in small print."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _understand(fault: str) -> Fault:
    found = _FAULT.fullmatch(fault)
    if not found:
        raise ValueError(f"unknown fault {fault!r}")
    status, pieces = found.groups()
    return Fault(int(status) if status else None, int(pieces) if pieces else None, fault == "silent")

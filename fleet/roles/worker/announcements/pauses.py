"""When a device in a session can be spoken to: after an answer, or while nobody says anything."""

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal

QUIET_SECONDS: Final = 5.0
"""Without an answer for so long, nobody is taken to speak."""
LONGEST_ANSWER_SECONDS: Final = 60.0
MOST_DEVICES: Final = 20_000
"""Devices whose last answer is known; the earliest one is forgotten."""

Spoken = Literal["spoken", "cut_short"]


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """How an answer ended, None if it has not; and how many sentences of one that was cut short had begun."""

    spoken: Spoken | None = None
    sentences: int | None = None


@dataclass(slots=True)
class _Answer:
    turn: str
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    pause: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is over, and when the device has left its session: the end of the answer may be told after that."""
    end: AnswerEnd = AnswerEnd()

    def change(self) -> None:
        """Wake whoever waits for its end, or for a pause."""
        self.changed.set()
        self.pause.set()


class AnswerPauses:
    """Knows of each device whether its newest answer is over."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, _Answer] = OrderedDict()
        self._stirred: dict[str, asyncio.Event] = {}
        """Of devices at which nobody has spoken: set when a turn begins, or the session ends."""

    def begin(self, mac: str, turn: str) -> None:
        """Note that a turn begins."""
        known = self._answers.get(mac)
        if known is None or known.turn != turn:
            self._answers[mac] = _Answer(turn)
            self._stir(mac)
        self._answers.move_to_end(mac)
        if known is not None and known.turn != turn:
            known.change()
        if len(self._answers) > MOST_DEVICES:
            self._answers.popitem(last=False)

    def end(self, mac: str, turn: str, spoken: Spoken, sentences: int | None = None) -> None:
        """Note that the answer of a turn was spoken, or interrupted after so many sentences had begun."""
        known = self._answers.get(mac)
        if known is not None and known.turn == turn:
            known.end = AnswerEnd(spoken, sentences)
            known.change()

    def withdraw(self, mac: str, turn: str, sentences: int | None) -> None:
        """Note how many sentences of an answer had begun when its user went on to speak: this is no pause."""
        known = self._answers.get(mac)
        if known is not None and known.turn == turn:
            known.end = AnswerEnd(None, sentences)

    def leave(self, mac: str) -> None:
        """Note that a device has left its session: nobody needs to wait for a pause in it."""
        self._stir(mac)
        if known := self._answers.get(mac):
            known.pause.set()

    async def wait(self, mac: str) -> None:
        """Return at the end of the present answer, or after `QUIET_SECONDS` without one, or when the session ends."""
        known = self._answers.get(mac)
        if known is None or known.pause.is_set():
            stirred = self._stirred[mac] = asyncio.Event()
            try:
                await _come(stirred, QUIET_SECONDS)
            finally:
                if self._stirred.get(mac) is stirred:
                    del self._stirred[mac]
            known = self._answers.get(mac)
        if known is not None:
            await _come(known.pause, LONGEST_ANSWER_SECONDS)

    async def outcome(self, mac: str, turn: str) -> AnswerEnd:
        """Wait until the answer of a turn is over, or it is clear that nobody will know."""
        known = self._answers.get(mac)
        if known is None or known.turn != turn:
            return AnswerEnd()
        await _come(known.changed, LONGEST_ANSWER_SECONDS)
        return known.end

    def _stir(self, mac: str) -> None:
        if stirred := self._stirred.get(mac):
            stirred.set()


async def _come(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()

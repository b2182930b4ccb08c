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
    end: AnswerEnd = AnswerEnd()


class AnswerPauses:
    """Knows of each device whether its newest answer is over."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, _Answer] = OrderedDict()

    def begin(self, mac: str, turn: str) -> None:
        """Note that a turn begins."""
        known = self._answers.get(mac)
        if known is None or known.turn != turn:
            self._answers[mac] = _Answer(turn)
        self._answers.move_to_end(mac)
        if known is not None and known.turn != turn:
            known.changed.set()
        if len(self._answers) > MOST_DEVICES:
            self._answers.popitem(last=False)

    def end(self, mac: str, turn: str, spoken: Spoken, sentences: int | None = None) -> None:
        """Note that the answer of a turn was spoken, or interrupted after so many sentences had begun."""
        known = self._answers.get(mac)
        if known is not None and known.turn == turn:
            known.end = AnswerEnd(spoken, sentences)
            known.changed.set()

    def withdraw(self, mac: str, turn: str, sentences: int | None) -> None:
        """Note how many sentences of an answer had begun when its user went on to speak: this is no pause."""
        known = self._answers.get(mac)
        if known is not None and known.turn == turn:
            known.end = AnswerEnd(None, sentences)

    async def wait(self, mac: str) -> None:
        """Return at the end of the present answer, or after `QUIET_SECONDS` in which there was none."""
        known = self._answers.get(mac)
        if known is None or known.end.spoken:
            with suppress(TimeoutError):
                async with asyncio.timeout(QUIET_SECONDS):
                    while self._answers.get(mac) is known:  # noqa: ASYNC110 - a turn that begins has no event yet
                        await asyncio.sleep(0.1)
            known = self._answers.get(mac)
        if known is not None:
            await self._over(known)

    async def outcome(self, mac: str, turn: str) -> AnswerEnd:
        """Wait until the answer of a turn is over, or it is clear that nobody will know."""
        known = self._answers.get(mac)
        if known is None or known.turn != turn:
            return AnswerEnd()
        await self._over(known)
        return known.end

    async def _over(self, answer: _Answer) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_ANSWER_SECONDS):
                await answer.changed.wait()

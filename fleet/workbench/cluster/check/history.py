"""What happened while the cluster was restarted. All times are seconds on one clock."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fleet.workbench.cluster.cluster import Restart

Outcome = Literal["open", "answered", "lost"]
Kind = Literal["device", "client"]


@dataclass(slots=True)
class Turn:
    """One question of a user, and its result."""

    number: int
    who: str
    kind: Kind
    mark: int
    begun: float
    asked: float = 0.0
    """When the user had said it, or sent it."""
    heard: float = 0.0
    """When the answer began to sound, or came."""
    ended: float = 0.0
    outcome: Outcome = "open"
    again: int = 0
    """How often it was asked anew: a goodbye came as the user began to speak, or before a text was taken."""
    calls: int = 0
    """How often its tool ran."""
    answer: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def wait(self) -> float | None:
        """Seconds from the question's end to the answer's begin."""
        return self.heard - self.asked if self.heard else None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that happened and must not."""

    rule: str
    detail: str


@dataclass(slots=True)
class History:
    """All observations; `over` is when the last process had been replaced."""

    turns: list[Turn] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    """Faults that were found while the cluster was restarted."""
    people: list[str] = field(default_factory=list)
    """Everyone who talks."""
    asked_api: int = 0
    over: float = 0.0
    rough: int = 0
    """How often a rule of timing was broken: by the server, or by a machine that is too busy."""
    held_up: float = 0.0
    """The longest that the devices' own process came late, in seconds."""

    def begin(self, who: str, kind: Kind, mark: int, now: float) -> Turn:
        """Return a new turn."""
        turn = Turn(len(self.turns) + 1, who, kind, mark, now)
        self.turns.append(turn)
        return turn

    def blame(self, rule: str, detail: str) -> None:
        self.faults.append(Fault(rule, detail))

    def of(self, who: str) -> Iterator[Turn]:
        """Return the turns of one user."""
        return (turn for turn in self.turns if turn.who == who)


def during(turns: Sequence[Turn], restart: Restart) -> list[Turn]:
    """Return the turns during which a process was replaced."""
    ended = restart.began + restart.seconds
    return [turn for turn in turns if turn.begun < ended and turn.ended > restart.began]

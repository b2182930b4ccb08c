"""Records what happens while the cluster is restarted. All times are seconds on one clock."""

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
    """When the user had finished speaking, or had sent the text."""
    heard: float = 0.0
    """When the first audio or text of the answer came."""
    ended: float = 0.0
    outcome: Outcome = "open"
    repeats: int = 0
    """How often the user repeated it: a goodbye came at the begin of the speech, or before the text was accepted."""
    calls: int = 0
    """How often its tool ran."""
    answer: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def wait(self) -> float | None:
        """Seconds from the end of the question to the begin of the answer."""
        return self.heard - self.asked if self.heard else None


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule, and how it was broken."""

    rule: str
    detail: str


@dataclass(slots=True)
class History:
    """All observations; `over` is the time at which the last process had been replaced."""

    turns: list[Turn] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    """Faults that were found during the restart."""
    users: list[str] = field(default_factory=list)
    """Names of the devices and clients that talk."""
    api_requests: int = 0
    over: float = 0.0
    timing_violations: int = 0
    """How often a timing rule was broken, by the server or because the machine is too busy."""
    device_lag: float = 0.0
    """Longest lateness of the process of the devices, in seconds."""

    def begin(self, who: str, kind: Kind, mark: int, now: float) -> Turn:
        """Return a new turn."""
        turn = Turn(len(self.turns) + 1, who, kind, mark, now)
        self.turns.append(turn)
        return turn

    def add_fault(self, rule: str, detail: str) -> None:
        self.faults.append(Fault(rule, detail))

    def of(self, who: str) -> Iterator[Turn]:
        """Return the turns of one user."""
        return (turn for turn in self.turns if turn.who == who)


def during(turns: Sequence[Turn], restart: Restart) -> list[Turn]:
    """Return the turns that overlap with a restart."""
    ended = restart.began + restart.seconds
    return [turn for turn in turns if turn.begun < ended and turn.ended > restart.began]

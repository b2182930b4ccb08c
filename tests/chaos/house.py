"""What all devices and faults of a run share."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.sim.records.change_signal import ChangeSignal
from tests.chaos.history import Span, Turn, Violation, deadline
from tests.chaos.journal import Journal
from tests.chaos.scene import ToolScene


@dataclass(slots=True)
class Moment:
    """A fault that struck, and until when it lasted."""

    what: str
    kind: str
    began: float
    ended: float | None = None

    @property
    def span(self) -> Span:
        return Span(self.began, self.ended)


@dataclass(slots=True)
class House:
    """The scripted models, the records, and the faults so far.

    `limit` is within how many seconds after the last fault a turn must have ended.
    """

    steering: Steering
    journal: Journal
    limit: float
    turns: list[Turn] = field(default_factory=list)
    faults: list[Moment] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    """What was seen while it happened."""
    over: int = 0
    """Turns that have ended."""
    changed: ChangeSignal = field(default_factory=ChangeSignal)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def late(self, since: float, limit: float = 0.0) -> bool:
        """Whether what began then should have come to an end by now: in so many seconds, or the turns' limit."""
        now = self.now()
        return now > deadline(since, limit or self.limit, [fault.span for fault in self.faults], now, 3 * self.limit)

    def blame(self, rule: str, detail: str) -> None:
        self.violations.append(Violation(rule, detail))
        self.changed.notify()

    def finish(self, turn: Turn) -> None:
        """Take note that a turn has ended."""
        turn.ended = self.now()
        self.over += turn.outcome != "broken off"
        self.journal.note(
            turn.device, f"turn {turn.outcome}", turn=turn.number, said=turn.text, told=turn.told, notes=turn.notes
        )
        self.changed.notify()

    @contextmanager
    def scene(self, device: str, *, more: int = 1, slow: float = 0.0, seconds: float = 0.9) -> Iterator[Turn]:
        """Give a turn of a device, for which the models have a script while the block lasts."""
        mark = self.steering.free_mark()
        turn = Turn(len(self.turns) + 1, device, mark, self.now())
        self.turns.append(turn)
        scene = ToolScene(
            mark,
            "please act",
            reply_seconds=seconds,
            turn=turn,
            asked=lambda: self.steering.asked(mark),
            more=more,
            slow=slow,
        )
        self.steering.add(scene)
        try:
            yield turn
        finally:
            self.steering.release(mark)

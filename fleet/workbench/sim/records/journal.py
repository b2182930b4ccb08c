"""What happened, when: steps for people and reports, counters, and the audit, on one clock."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from fleet.workbench.sim.records.audit import Audit, Finding

LONGEST = 20_000
"""Steps that are kept; later ones are counted, and `on_step` is still called."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened, `at` seconds after the simulation began."""

    at: float
    name: str
    detail: dict[str, JsonValue]


class Journal:
    """Records steps, counters and breaches.

    Args:
        clock: Monotonic seconds.
        ignored: Rules of the audit that do not count.
        on_step: Called with every step at once, for live display.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        ignored: frozenset[str] = frozenset(),
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        self.clock = clock
        self._start = clock()
        self._on_step = on_step
        self.steps: list[Step] = []
        self.counters: Counter[str] = Counter()
        self.audit = Audit(ignored)

    def since_start(self, at: float | None = None) -> float:
        """Return the seconds from the start to `at` on the clock, or to now."""
        return (self.clock() if at is None else at) - self._start

    def note(self, name: str, /, at: float | None = None, **detail: JsonValue) -> None:
        step = Step(self.since_start(at), name, detail)
        if len(self.steps) < LONGEST:
            self.steps.append(step)
        else:
            self.counters["steps_not_kept"] += 1
        if self._on_step:
            self._on_step(step)

    def count(self, name: str, amount: int = 1) -> None:
        self.counters[name] += amount

    def peak(self, name: str, value: int) -> None:
        """Keep the largest value seen under this counter."""
        self.counters[name] = max(self.counters[name], value)

    def violate(self, rule: str, detail: str, at: float | None = None) -> None:
        if self.audit.record(self.since_start(at), rule, detail):
            self.note("violation", at, rule=rule, detail=detail)

    def excuse(self, rules: Iterable[str], seconds: float) -> None:
        """Do not count breaches of these rules for so many seconds: something else than the server causes them."""
        self.audit.excuse(rules, self.since_start() + seconds)

    def judge(self, findings: Iterable[Finding]) -> None:
        for rule, detail in findings:
            self.violate(rule, detail)

    def find(self, name: str) -> list[Step]:
        """Return the steps of this name, in order."""
        return [step for step in self.steps if step.name == name]

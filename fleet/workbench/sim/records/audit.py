"""The rules for a server (`rules.toml`), and the record of its breaches.

A breach is collected, never raised: the device goes on as firmware would. Clauses are those of the device contract.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KEPT_PER_RULE = 20
"""Violations of one rule that are kept with their detail; further ones are only counted."""

Finding = tuple[str, str]
"""A rule's name and what was seen."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A duty of the server, and the clause of the device contract."""

    clause: str
    text: str


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on something counts as a breach, in seconds."""

    hello: float = 3.0
    """Answer to a hello (H10)."""
    underrun: float = 0.06
    """Silence inside a sentence of an answer (D4)."""
    pause: float = 2.0
    """Silence between two sentences of an answer: no firmware rule, but a listener takes it for the end."""
    after_abort: float = 0.3
    """Audio that still arrives after an interruption (D12 with a round trip)."""
    abort_answer: float = 1.0
    """`tts stop` after an interruption (S5 with a round trip)."""
    stuck: float = 15.0
    """State speaking without anything to play (S17)."""
    late_stop: float = 1.0
    """`tts stop` after the last audio was played (D10)."""
    late_packets: float = 0.5
    """Audio that arrives after the state speaking was left."""
    unheard: float = 120.0
    """State listening without a sign from the server (S15)."""


def _read_rules() -> dict[str, Rule]:
    table = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
    return {name: Rule(clause, text) for name, (clause, text) in table.items()}


RULES: Final = _read_rules()


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach: `at` in seconds since the simulation began."""

    at: float
    rule: str
    detail: str

    @property
    def clause(self) -> str:
        return RULES[self.rule].clause


class Audit:
    """Collects breaches; `ignored` names the rules that do not count."""

    def __init__(self, ignored: frozenset[str] = frozenset()) -> None:
        unknown = ignored - RULES.keys()
        if unknown:
            raise KeyError(f"no such rule: {', '.join(sorted(unknown))}")
        self._ignored = ignored
        self._excused: dict[str, float] = {}
        self.violations: list[Violation] = []
        self.counts: dict[str, int] = {}
        self.excused: dict[str, int] = {}
        """Breaches that are not the server's fault, by rule."""

    def excuse(self, rules: Iterable[str], until: float) -> None:
        """Do not count breaches of these rules until this time: something else than the server causes them."""
        for rule in rules:
            RULES[rule]
            self._excused[rule] = max(until, self._excused.get(rule, until))

    def record(self, at: float, rule: str, detail: str) -> bool:
        """Record a breach of a rule of `RULES`; return whether it counts."""
        RULES[rule]
        if rule in self._ignored:
            return False
        if at < self._excused.get(rule, at):
            self.excused[rule] = self.excused.get(rule, 0) + 1
            return False
        self.counts[rule] = self.counts.get(rule, 0) + 1
        if self.counts[rule] <= KEPT_PER_RULE:
            self.violations.append(Violation(at, rule, detail))
        return True

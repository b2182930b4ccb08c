"""The faults of a run, drawn from its seed before it begins."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Target = Literal["worker", "edge", "broker", "redis", "api", "gateway"]
"""The plan that is drawn hits only the first four; containers have all."""
How = Literal["kill", "freeze", "restart"]

POINTS = (
    "turn begun",
    "model asked",
    "call begun",
    "call published",
    "call answered",
    "call completed",
    "turn journalled",
    "sentence handed over",
    "turn remembered",
)
"""Lines of a worker's log at which a fault may strike: the process is stopped by itself, at the line."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    `after` is the number of turns that are over when it strikes. `which` counts the processes of the target from 0.
    With a `point` it strikes when a worker writes this line for the `nth` time from then on. `seconds` is how long a
    process is frozen, or is away before it is started again.
    """

    number: int
    after: int
    target: Target
    which: int
    how: How
    seconds: float
    point: str = ""
    nth: int = 1

    @property
    def kind(self) -> str:
        """Name of its kind, for the table."""
        return f"{self.target} {self.how}" + (f" at {self.point!r}" if self.point else "")

    def __str__(self) -> str:
        name = self.target if self.target in ("broker", "redis") else f"{self.target} {self.which + 1}"
        at = f" at {self.point!r} number {self.nth}" if self.point else ""
        return f"{self.number}. after {self.after} turns: {self.how} {name}{at}, {self.seconds:.1f} s"


_Card = tuple[Target, How, bool]
_FIRST: tuple[_Card, ...] = (
    ("worker", "kill", True),
    ("edge", "kill", False),
    ("worker", "freeze", False),
    ("broker", "kill", False),
    ("worker", "restart", False),
    ("redis", "kill", False),
    ("edge", "restart", False),
    ("worker", "kill", True),
)
"""Even a short run has these."""
_KILLS_AT_POINTS: tuple[_Card, ...] = (("worker", "kill", True),) * 9
_FREEZES_AT_POINTS: tuple[_Card, ...] = (("worker", "freeze", True),) * 2
_DECK: tuple[_Card, ...] = (
    *_KILLS_AT_POINTS,
    *_FREEZES_AT_POINTS,
    ("broker", "kill", True),
    ("redis", "kill", True),
    ("worker", "kill", False),
    ("worker", "freeze", False),
    ("worker", "restart", False),
    ("edge", "kill", False),
    ("edge", "freeze", False),
    ("edge", "restart", False),
    ("broker", "freeze", False),
    ("broker", "restart", False),
    ("redis", "freeze", False),
    ("redis", "restart", False),
)
_FREEZE = {"worker": (0.5, 10.0), "edge": (0.5, 10.0), "broker": (0.3, 3.0), "redis": (0.3, 3.0)}
_AWAY = (0.2, 3.0)


def draw(seed: int, faults: int, turns: int, most_nth: int = 5) -> list[Fault]:
    """Return the faults of a run in their order, spread over its turns.

    Args:
        seed: The same one gives the same plan.
        faults: How many.
        turns: How many turns the run has.
        most_nth: Highest number of the line at which a fault at a point strikes.
    """
    chance = random.Random(seed)
    points = _cycle(POINTS, chance)
    moments = sorted(chance.uniform(0.02, 0.97) * turns for _ in range(faults))
    return [
        _fault(number, int(moment), card, chance, points, most_nth)
        for number, (moment, card) in enumerate(zip(moments, _cards(faults, chance), strict=True), start=1)
    ]


def _fault(number: int, after: int, card: _Card, chance: random.Random, points: list[str], most_nth: int) -> Fault:
    target, how, at_point = card
    seconds = chance.uniform(*(_FREEZE[target] if how == "freeze" else _AWAY))
    which, nth = chance.randrange(2), chance.randint(1, most_nth)
    point = points[number % len(points)] if at_point else ""
    return Fault(number, after, target, which, how, round(seconds, 2), point, nth if at_point else 1)


def _cards(count: int, chance: random.Random) -> list[_Card]:
    cards = list(_FIRST)
    chance.shuffle(cards)
    while len(cards) < count:
        deck = list(_DECK)
        chance.shuffle(deck)
        cards += deck
    return cards[:count]


def _cycle(items: Sequence[str], chance: random.Random) -> list[str]:
    shuffled = list(items)
    chance.shuffle(shuffled)
    return shuffled

"""What the work on desired states hands to the database, and gets from it."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from fleet.adapters.sql.desired_schema import NEVER, RESTING
from fleet.core.desired_state import CallResult, Properties, StateCall
from fleet.wire.operator_calls import IN_SESSION, OFFLINE

ROUND_MS: Final = 120_000
"""How long a round may take, besides its calls; then its calls are looked up."""
CALL_MS: Final = 70_000
BUSY_MS: Final = 15_000
"""Shortest time for which a device is left alone that was in a session."""
SOON_MS: Final = 2_000
"""From a change to the question what the device reports now."""
AT_ONCE: Final = 500

RoundEnd = Literal["done", "not_sent", "unknown"]
ROUND_ENDS: Final[tuple[RoundEnd, ...]] = get_args(RoundEnd)


@dataclass(frozen=True, slots=True)
class DueDevice:
    """A device whose time has come. `tools` is the number of its tool list, None if that is not known."""

    mac: int
    round: int
    since: int
    calls: Sequence[StateCall]
    """The calls of the round under way."""
    missing: Sequence[int]
    """Those of them that have no outcome."""
    properties: Properties
    tools: int | None
    tenant: int


@dataclass(frozen=True, slots=True)
class RoundStart:
    """How a round begins: with what the device offers, and what the server itself keeps for it.

    With `due` there is no round now: the device is looked at again then.
    """

    tools: Collection[str] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    """What the server kept for the device before this round."""
    written: Mapping[str, Any] = field(default_factory=dict)
    """What it keeps since."""
    due: int | None = None


@dataclass(frozen=True, slots=True)
class StateOutcome:
    """What became of a call of a round. `at`: when, in ms since 1970."""

    mac: int
    round: int
    call: int
    result: CallResult
    at: int


@dataclass(frozen=True, slots=True)
class NextLooks:
    """When devices are looked at again after a round; times in ms."""

    now: int
    """Since 1970."""
    poll_ms: int
    """0 for never, until the device connects again."""

    def soon(self) -> int:
        return self.now + SOON_MS

    def poll(self) -> int:
        """Return the time of the next look at a device of which nothing is to be done."""
        return self.now + round(self.poll_ms * random.uniform(0.8, 1.2)) if self.poll_ms else RESTING

    def retry(self, reason: str = "") -> int:
        """Return the time of the next try after one that was not sent, or that nobody knows of."""
        if reason == OFFLINE:
            return NEVER
        return self.now + round((1 if reason == IN_SESSION else 2) * BUSY_MS * random.uniform(1, 2))

"""The terms of a call of a device's tool."""

from dataclasses import dataclass

from fleet.adapters.redis.sessions.calls import OperatorEnd
from fleet.wire.dialects import XIAOZHI


@dataclass(frozen=True, slots=True)
class CallTerms:
    """The terms of a call: its turn, its id within the turn, and the longest wait for its answer."""

    turn: str
    call_id: str
    seconds: float
    leaves: bool = False
    """The device goes offline to carry it out; that counts as its answer."""
    fails_if_answered: bool = False
    """The device answers only on failure (`self.upgrade_firmware`)."""
    control: bool = False
    """It counts as done when it was sent; if its answer is an error, the next turn gets a report."""
    dialect: str = XIAOZHI
    """Of the device."""
    operator: bool = False
    """An operator's call: `call_id` names its record, and `turn` is empty. Silence is never taken for a success."""
    idle: bool = False
    """An operator's call that is not sent during a session."""
    end: OperatorEnd | None = None
    """What the device's answer ends in the same step."""

    @property
    def idempotency(self) -> str:
        """The call's idempotency key, for `CALL_KEPT_MS` after its deadline."""
        return f"operator:{self.call_id}" if self.operator else f"{self.turn}:{self.call_id}"

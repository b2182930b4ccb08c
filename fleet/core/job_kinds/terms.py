"""What the kind of a job decides: which devices it skips, which scope it needs, and what shows its success."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fleet.core.query.conditions import Condition
from fleet.core.tool_kinds import kind_of

LONGEST_ANSWER_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class JobTerms:
    """What is known of a job by its kind, and by what the kind was given."""

    tool: str = ""
    """The tool that is called; devices that have no such tool are skipped. Empty: every device has what is needed."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    attribute: str = ""
    """The attribute of the device that the answer becomes; empty for none."""
    scopes: tuple[str, ...] = ()
    """What whoever makes it, or lets it go on, must have."""
    repeatable: bool = True
    """Whether an execution whose outcome is unknown may be repeated."""
    connected: bool = True
    """Whether a device must be connected, and is left alone in sessions and in its quiet hours."""
    skips: Mapping[str, Condition] = field(default_factory=dict)
    """Further devices that are skipped, by the reason."""
    evidence: frozenset[str] = frozenset()
    """Kinds of events that show what became of an execution; with none, no execution waits for evidence."""
    seconds: float = 0.0
    """How long an outcome may take beyond that of a tool."""
    sessions: bool = False
    """Whether a device may wait for its next session."""
    silence: str = ""
    """What is known of an execution whose evidence does not come in time."""
    recalled: bool = False
    """Whether a job that halts or is stopped takes back what devices have not begun yet."""

    @property
    def answer_ms(self) -> int:
        """How long the outcome of what was sent may take."""
        return max(LONGEST_ANSWER_MS, round(max(kind_of(self.tool).seconds, self.seconds) * 1000))

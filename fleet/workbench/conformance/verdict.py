"""How a check ends early."""

from fleet.workbench.sim.records.expectation import Failed as Failed
from fleet.workbench.sim.records.expectation import require as require


class NotApplicable(Exception):
    """This server, device or setup cannot be judged so; the text says why."""


def span(seconds: float) -> str:
    """Return a time as people read it."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"

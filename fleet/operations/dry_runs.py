"""Dry runs as lines of text."""

from collections.abc import Iterable

from fleet.ground.terminal import plural
from fleet.wire.control.jobs import SkipCount


def skip_lines(found: Iterable[SkipCount], verb: str = "skipped") -> list[str]:
    """Return how many devices are left out, and why, one line for each reason."""
    return [f"{plural(one.devices, 'device')} {verb}: {one.reason}" for one in found]

"""Numeric arguments: which one `more` and `less` move, and which numbers stand for `open` and `closed`."""

from collections.abc import Iterable
from itertools import pairwise

from fleet.workbench.demo_llm.reading import Reading, read
from fleet.workbench.demo_llm.schemas import Property, Tool


def adjustable(reading: Reading, tool: Tool) -> Property | None:
    """Return the numeric argument that `more` and `less` move: the one that was named, or the only one."""
    numeric = [entry for entry in tool.properties if entry.kind == "number"]
    named = [entry for entry in numeric if any(reading.has(name) for name in entry.concepts if name != "level")]
    if named:
        return named[0]
    about = any(tool.title.has(name) for name in reading.names("topic"))
    return numeric[0] if about and len(numeric) == 1 else None


def glossed(tool: Tool, entry: Property, action: str) -> float | None:
    """Return the number that stands for an action in the descriptions: `0 is closed, 100 is open`."""
    if entry.kind != "number":
        return None
    for text in (entry.description, read(tool.description)):
        for number, meaning in _numbered(text):
            if action in meaning and entry.fits(number):
                return number
    return None


def _numbered(text: Reading) -> Iterable[tuple[float, set[str]]]:
    """Yield each number with the action words between it and the next one."""
    ends = [*text.numbers, None]
    for number, following in pairwise(ends):
        if number is None:
            return
        stop = following.start if following else len(text.units)
        between = [mark for mark in text.marks if number.end <= mark.start < stop]
        yield number.value, {name for mark in between for name in mark.names}

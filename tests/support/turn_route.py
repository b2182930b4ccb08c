"""The functions on the way of a real turn, as a profiler sees them, and as docs/route-of-a-turn.md names them."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "route-of-a-turn.md"
CLIENTS = ("fleet/ground/", "fleet/adapters/redis/client/", "fleet/adapters/net/mqtt/")
"""What carries a step and knows nothing of turns: task groups and retries, the Redis client, the MQTT client."""
TOOLS = "Tool call: "
"""How the headings of the legs begin that only a turn with a tool call has."""
_STEP = re.compile(r"- \[`([\w.]+)`\]\(\.\./(fleet/[\w/]+\.py)\)")
_COMPREHENSION = re.compile(r"<(list|set|dict)comp>$|<genexpr>$")

Step = tuple[str, str]
"""File and qualified name of a function."""


@dataclass(frozen=True, slots=True)
class Leg:
    """The functions that are on the stack when the turn is handed over: to a queue, a thread, a task or a client."""

    title: str
    steps: tuple[Step, ...]


def read_page() -> list[Leg]:
    """Return the legs in the order of the page."""
    legs = []
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        if steps := tuple((path, name) for name, path in _STEP.findall(section)):
            legs.append(Leg(title, steps))
    return legs


class Trace:
    """The stacks at every entry of a function that ends a leg, in order of time."""

    def __init__(self, ends: set[Step]) -> None:
        self._names = {name for _, name in ends}
        self._ends = ends
        self.stacks: list[tuple[Step, ...]] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record during the block, in threads that begin in it, too."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_qualname in self._names and _step(frame) in self._ends:
            self.stacks.append(tuple(_stack(frame)))


def _step(frame: FrameType) -> Step:
    path = Path(frame.f_code.co_filename)
    inside = path.is_relative_to(ROOT / "fleet")
    return (str(path.relative_to(ROOT)) if inside else "", frame.f_code.co_qualname)


def _stack(innermost: FrameType) -> list[Step]:
    """Return the stack's functions of fleet, the outermost first, without the clients and comprehensions."""
    found: list[Step] = []
    frame: FrameType | None = innermost
    while frame is not None:
        path, name = _step(frame)
        if path and not path.startswith(CLIENTS) and not _COMPREHENSION.search(name):
            found.append((path, name))
        frame = frame.f_back
    return found[::-1]


def without_beginning(stack: tuple[Step, ...], named: set[Step]) -> tuple[Step, ...]:
    """Return a stack without what earlier legs have named of its beginning."""
    at = next((at for at, step in enumerate(stack[:-1]) if step not in named), len(stack) - 1)
    return stack[at:]

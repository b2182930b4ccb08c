"""Spans of turns on an edge: from the recognition of an utterance to the end of its answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fleet.ground.tracing import spans
from fleet.ground.tracing.spans import OFF, Attributes, Span

MOST: Final = 20_000
"""Most open spans of turns; beyond it the oldest are ended."""

_open: dict[str, Span] = {}
_unnamed: set[Span] = set()
"""Spans of utterances in recognition, whose turn has no id yet."""


class _RemoteSpan:
    """A turn whose span is in another process: only its `traceparent` is known."""

    def __init__(self, traceparent: str) -> None:
        self.traceparent = traceparent

    def set(self, attributes: Attributes) -> None:
        """Do nothing."""

    def add_event(self, event: str) -> None:
        """Do nothing."""

    def fail(self, reason: str) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


@contextmanager
def utterance_span(attributes: Attributes, ago: float) -> Iterator[None]:
    """Begin the span of a turn; it ends with the block unless `adopt` was called.

    Args:
        attributes: First attributes.
        ago: Seconds since the user stopped speaking.
    """
    with spans.root("turn", attributes, ago) as root:
        if root is OFF:
            yield
            return
        _unnamed.add(root)
        try:
            yield
        finally:
            if root in _unnamed:
                _unnamed.discard(root)
                root.end()


def adopt(turn: str) -> str:
    """Give the current span of an utterance to a turn, until `end`; return its `traceparent`."""
    root = spans.current()
    if root not in _unnamed:
        return ""
    _unnamed.discard(root)
    root.set({"fleet.turn": turn})
    _keep(turn, root)
    return root.traceparent


def join(turn: str, traceparent: str) -> None:
    """Register a turn whose span is in another process."""
    if traceparent and turn not in _open:
        _keep(turn, _RemoteSpan(traceparent))


def find(turn: str) -> Span:
    """Return the span of a turn."""
    return _open.get(turn, OFF)


def end(turn: str, outcome: str = "") -> None:
    """End the span of a turn."""
    if _open and (found := _open.pop(turn, None)) is not None:
        if outcome:
            found.set({"fleet.outcome": outcome})
        found.end()


def _keep(turn: str, span: Span) -> None:
    while len(_open) >= MOST:
        _open.pop(next(iter(_open))).end()
    _open[turn] = span

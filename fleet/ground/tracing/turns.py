"""The spans of an edge's turns: begun with the recognition of an utterance, ended when its answer is over."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fleet.ground.tracing import spans
from fleet.ground.tracing.spans import OFF, Attributes, Span

MOST: Final = 20_000
"""Turns at a time whose end is awaited; of more the oldest are ended as they are."""

_open: dict[str, Span] = {}
_unnamed: set[Span] = set()
"""Of utterances that are being recognised."""


class _Elsewhere:
    """A turn whose span belongs to another process."""

    def __init__(self, traceparent: str) -> None:
        self.traceparent = traceparent

    def set(self, attributes: Attributes) -> None:
        """Not ours."""

    def note(self, event: str) -> None:
        """Not ours."""

    def fail(self, reason: str) -> None:
        """Not ours."""

    def end(self) -> None:
        """Not ours."""


@contextmanager
def hearing(attributes: Attributes, ago: float) -> Iterator[None]:
    """Begin a turn's span for the block; it ends with the block unless it was adopted.

    Args:
        attributes: What is known of it.
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
    """Let the span of this work be a turn's, until that ends; return its `traceparent`."""
    root = spans.current()
    if root not in _unnamed:
        return ""
    _unnamed.discard(root)
    root.set({"fleet.turn": turn})
    _keep(turn, root)
    return root.traceparent


def join(turn: str, traceparent: str) -> None:
    """Take part in a turn whose span another process has."""
    if traceparent and turn not in _open:
        _keep(turn, _Elsewhere(traceparent))


def find(turn: str) -> Span:
    """Return a turn's span."""
    return _open.get(turn, OFF)


def end(turn: str, outcome: str = "") -> None:
    """A turn is over."""
    if _open and (found := _open.pop(turn, None)) is not None:
        if outcome:
            found.set({"fleet.outcome": outcome})
        found.end()


def _keep(turn: str, span: Span) -> None:
    while len(_open) >= MOST:
        _open.pop(next(iter(_open))).end()
    _open[turn] = span

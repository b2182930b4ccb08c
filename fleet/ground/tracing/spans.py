"""Spans of the steps of a turn. While no tracer is set, each of these functions costs one comparison.

The current span is a context variable, inherited by child tasks. A parent in another process is named by its
`traceparent` (W3C Trace Context).
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

Value = str | bool | int | float
Attributes = Mapping[str, Value]


class Span(Protocol):
    """A timed operation."""

    @property
    def traceparent(self) -> str:
        """Identifies the span for other processes; empty while traces are off."""

    def set(self, attributes: Attributes) -> None:
        """Set attributes."""

    def add_event(self, event: str) -> None:
        """Add an event at the current time."""

    def fail(self, reason: str) -> None:
        """Mark the span as failed."""

    def end(self) -> None:
        """End the span; a second call does nothing."""


class Tracer(Protocol):
    """Creates spans and exports them."""

    def begin(self, name: str, parent: str, attributes: Attributes, started: int) -> Span:
        """Return a new span.

        Args:
            name: Kind of the operation.
            parent: Its `traceparent`; empty for the root span of a trace.
            attributes: First attributes.
            started: Start time in nanoseconds since 1970.
        """

    def close(self) -> None:
        """Export waiting spans; blocks for some seconds at most."""


class _Off:
    """The span while traces are off: does nothing."""

    traceparent = ""

    def set(self, attributes: Attributes) -> None:
        """Nothing."""

    def add_event(self, event: str) -> None:
        """Nothing."""

    def fail(self, reason: str) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


OFF: Span = _Off()

_tracer: Tracer | None = None
_pii = False
_current: ContextVar[Span] = ContextVar("fleet_span", default=OFF)


def enable(tracer: Tracer, *, pii: bool) -> None:
    """Create spans from now on; `pii`: whether they may hold speech and prompts."""
    global _tracer, _pii
    _tracer, _pii = tracer, pii


def disable() -> None:
    """Create no more spans, and export the waiting ones."""
    global _tracer, _pii
    tracer, _tracer, _pii = _tracer, None, False
    if tracer is not None:
        tracer.close()


def are_on() -> bool:
    """Whether spans are created."""
    return _tracer is not None


def current() -> Span:
    """Return the current span."""
    return _current.get()


def begin(name: str, attributes: Attributes | None = None, parent: str = "", ago: float = 0.0) -> Span:
    """Return a new span; the caller must end it.

    Args:
        name: Kind of the operation.
        attributes: First attributes.
        parent: Its `traceparent`; without it the current span.
        ago: Seconds since its start.
    """
    if _tracer is None:
        return OFF
    started = time.time_ns() - int(ago * 1e9)
    return _tracer.begin(name, parent or _current.get().traceparent, attributes or {}, started)


@contextmanager
def span(name: str, attributes: Attributes | None = None, parent: str = "", ago: float = 0.0) -> Iterator[Span]:
    """Make the block a span, the current one inside the block; see `begin`."""
    if _tracer is None:
        yield OFF
        return
    made = begin(name, attributes, parent, ago)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)
        made.end()


@contextmanager
def root(name: str, attributes: Attributes, ago: float) -> Iterator[Span]:
    """Begin a trace; its root span is the current one inside the block. The caller ends it."""
    if _tracer is None:
        yield OFF
        return
    made = _tracer.begin(name, "", attributes, time.time_ns() - int(ago * 1e9))
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


def set_private(made: Span, attributes: Attributes) -> None:
    """Set attributes with speech or prompts, if the operator has allowed it (FLEET_LOG_PII)."""
    if _pii:
        made.set(attributes)

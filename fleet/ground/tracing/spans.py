"""Spans, for whoever does a part of a turn; while no tracer is set each of these functions is one comparison.

The span that work belongs to is found by context, in this task and its children; a parent of another process is named
by a `traceparent` (W3C Trace Context), which is all that travels.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

Value = str | bool | int | float
Attributes = Mapping[str, Value]


class Span(Protocol):
    """Some work that takes time."""

    @property
    def traceparent(self) -> str:
        """Names it to others; empty while traces are off."""

    def set(self, attributes: Attributes) -> None:
        """Add what is known of it."""

    def note(self, event: str) -> None:
        """Something happened in it now."""

    def fail(self, reason: str) -> None:
        """It did not do what it should."""

    def end(self) -> None:
        """It is over; a second end is none."""


class Tracer(Protocol):
    """Makes spans and sends them somewhere."""

    def begin(self, name: str, parent: str, attributes: Attributes, started: int) -> Span:
        """Return a new span.

        Args:
            name: Of the kind of work.
            parent: Its `traceparent`; empty for the first span of a trace.
            attributes: What is known of it.
            started: When, in nanoseconds since 1970.
        """

    def close(self) -> None:
        """Send what waits; blocks for some seconds at most."""


class _Off:
    """Stands for every span while traces are off."""

    traceparent = ""

    def set(self, attributes: Attributes) -> None:
        """Nothing."""

    def note(self, event: str) -> None:
        """Nothing."""

    def fail(self, reason: str) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


OFF: Span = _Off()

_tracer: Tracer | None = None
_pii = False
_current: ContextVar[Span] = ContextVar("fleet_span", default=OFF)


def switch_on(tracer: Tracer, *, pii: bool) -> None:
    """Make spans from now on; `pii` says whether they may hold what people say and models are told."""
    global _tracer, _pii
    _tracer, _pii = tracer, pii


def switch_off() -> None:
    """Make no more spans, and send those that wait."""
    global _tracer, _pii
    tracer, _tracer, _pii = _tracer, None, False
    if tracer is not None:
        tracer.close()


def current() -> Span:
    """Return the span that this work belongs to."""
    return _current.get()


def begin(name: str, attributes: Attributes | None = None, parent: str = "", ago: float = 0.0) -> Span:
    """Return a new span, to be ended by the caller.

    Args:
        name: Of the kind of work.
        attributes: What is known of it.
        parent: Its `traceparent`; without it the span of the context, if there is one.
        ago: Seconds since it began.
    """
    if _tracer is None:
        return OFF
    started = time.time_ns() - int(ago * 1e9)
    return _tracer.begin(name, parent or _current.get().traceparent, attributes or {}, started)


@contextmanager
def span(name: str, attributes: Attributes | None = None, parent: str = "", ago: float = 0.0) -> Iterator[Span]:
    """Make the block a span, and what is begun in it its children; see `begin`."""
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
    """Begin a trace, and make what is begun in the block children of its first span, which the caller ends."""
    if _tracer is None:
        yield OFF
        return
    made = _tracer.begin(name, "", attributes, time.time_ns() - int(ago * 1e9))
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


def private(made: Span, attributes: Attributes) -> None:
    """Add what people say or models are told, where the operator has switched that on."""
    if _pii:
        made.set(attributes)

"""A tracer that keeps its spans."""

from fleet.ground.tracing.spans import Attributes, Value


class NotedSpan:
    """A span, and what was said of it."""

    def __init__(self, name: str, parent: str, number: int, attributes: Attributes) -> None:
        self.name = name
        self.parent = parent
        self.traceparent = f"00-{1:032x}-{number:016x}-01"
        self.attributes: dict[str, Value] = dict(attributes)
        self.events: list[str] = []
        self.failure = ""
        self.ended = 0

    def set(self, attributes: Attributes) -> None:
        self.attributes.update(attributes)

    def note(self, event: str) -> None:
        self.events.append(event)

    def fail(self, reason: str) -> None:
        self.failure = reason

    def end(self) -> None:
        self.ended += 1


class NotedTracer:
    """Keeps every span that was begun."""

    def __init__(self) -> None:
        self.made: list[NotedSpan] = []
        self.closed = False

    def begin(self, name: str, parent: str, attributes: Attributes, started: int) -> NotedSpan:
        assert started > 0
        span = NotedSpan(name, parent, len(self.made) + 1, attributes)
        self.made.append(span)
        return span

    def close(self) -> None:
        self.closed = True

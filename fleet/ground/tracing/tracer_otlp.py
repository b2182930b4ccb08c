"""Exports spans by OTLP over HTTP; imported only if a collector is configured."""

from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags, set_span_in_context
from opentelemetry.trace import Span as Recorded

from fleet.ground.tracing.spans import Attributes

_PATH: Final = "/v1/traces"
_EXPORT_SECONDS: Final = 5.0
_PAUSE_MS: Final = 1000
_MOST_WAITING: Final = 4096
"""Spans that wait for export; further ones are dropped."""


class OtlpTracer:
    """Exports spans in batches, from a thread.

    Args:
        endpoint: The collector, http(s)://host:port.
        role: The role of this process.
    """

    def __init__(self, endpoint: str, role: str) -> None:
        resource = Resource.create({"service.name": f"fleet-{role}", "service.namespace": "fleet"})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        url = endpoint if endpoint.endswith(_PATH) else f"{endpoint}{_PATH}"
        exporter = OTLPSpanExporter(endpoint=url, timeout=_EXPORT_SECONDS)
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, max_queue_size=_MOST_WAITING, schedule_delay_millis=_PAUSE_MS)
        )
        self._tracer = self._provider.get_tracer("fleet")

    def begin(self, name: str, parent: str, attributes: Attributes, started: int) -> "OtlpSpan":
        """Return a new span; see `fleet.ground.tracing.spans.Tracer`."""
        above = read_traceparent(parent)
        # An empty span instead of None: with None the parent is the current span of another library.
        context = set_span_in_context(NonRecordingSpan(above or SpanContext(0, 0, is_remote=False)))
        return OtlpSpan(self._tracer.start_span(name, context, attributes=dict(attributes), start_time=started))

    def close(self) -> None:
        """Export waiting spans."""
        self._provider.shutdown()


class OtlpSpan:
    """One span."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        context = recorded.get_span_context()
        self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"

    def set(self, attributes: Attributes) -> None:
        self._recorded.set_attributes(dict(attributes))

    def add_event(self, event: str) -> None:
        self._recorded.add_event(event)

    def fail(self, reason: str) -> None:
        self._recorded.set_attribute("error.type", reason)
        self._recorded.set_status(Status(StatusCode.ERROR, reason))

    def end(self) -> None:
        if self._recorded.is_recording():
            self._recorded.end()


def read_traceparent(text: str) -> SpanContext | None:
    """Return the context that a `traceparent` names; None if it is invalid."""
    parts = text.split("-")
    if len(parts) != 4 or [len(part) for part in parts] != [2, 32, 16, 2]:
        return None
    try:
        _, trace, span, flags = (int(part, 16) for part in parts)
    except ValueError:
        return None
    found = SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(flags))
    return found if found.is_valid else None

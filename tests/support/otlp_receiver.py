"""A collector of traces: takes OTLP over HTTP and keeps the spans."""

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.ports import LOOPBACK


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it came."""

    role: str
    """The service's name."""
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, object]
    events: tuple[str, ...]
    begin: int
    end: int


class OtlpReceiver:
    """Listens on a free port of the loopback address."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        receiver = self

        class _Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/v1/traces":
                    receiver.take(body, self.headers.get("Content-Encoding", ""))
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer((LOOPBACK, 0), _Answer)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def __enter__(self) -> "OtlpReceiver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(240)

    def take(self, body: bytes, encoding: str) -> None:
        assert not encoding
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            role = _attributes(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [_read(str(role), span) for span in scope.spans]

    def trace(self, trace: str) -> list[ReceivedSpan]:
        return [span for span in list(self.spans) if span.trace == trace]


def _read(role, span) -> ReceivedSpan:  # type: ignore[no-untyped-def] # the library's generated classes
    return ReceivedSpan(
        role,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _attributes(span.attributes),
        tuple(event.name for event in span.events),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
    )


def _attributes(pairs) -> dict[str, object]:  # type: ignore[no-untyped-def] # the library's generated classes
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}

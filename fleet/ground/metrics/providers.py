"""Failures of providers: chat model, recognition, voices, vision."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import label_values

PROVIDERS: Final = ("llm", "asr", "tts", "vision")
KINDS: Final = label_values("provider_errors")

errors: Final = CounterMetric(
    "fleet_provider_errors",
    "Failed requests to a model or engine, including retried ones, by kind.",
    "worker edge gateway api",
    {"provider": PROVIDERS, "kind": KINDS},
)
_STATUSES: Final = {
    400: "request",
    401: "key",
    403: "key",
    404: "missing",
    413: "too_large",
    422: "request",
    429: "busy",
}


def kind_of(status: int) -> str:
    """Return the kind of failure of an HTTP status."""
    return _STATUSES.get(status, "server" if status >= 500 else "refused")

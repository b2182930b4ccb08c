"""Failures of providers (chat model, recognition, voices, vision), and tokens of the chat model."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import label_values

PROVIDERS: Final = ("llm", "asr", "tts", "vision", "turn", "opus", "audio_input")
"""Models, and the engines of an edge: ends of turns, its codec, and what comes from microphones."""
KINDS: Final = label_values("provider_errors")

errors: Final = CounterMetric(
    "fleet_provider_errors",
    "Failed requests to a model or engine, including retried ones, by kind.",
    "worker edge gateway api",
    {"provider": PROVIDERS, "kind": KINDS},
)
tokens: Final = CounterMetric(
    "fleet_llm_tokens",
    "Tokens as the chat model's endpoint counts them: input (all of the prompts), cached (the part of input for which "
    "the endpoint reused earlier work), output.",
    "worker gateway",
    {"kind": ("input", "cached", "output")},
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


def count_tokens(given: int, cached: int, written: int) -> None:
    """Count the tokens of a request to the chat model."""
    for kind, count in (("input", given), ("cached", cached), ("output", written)):
        tokens.add(kind, count=count)


def kind_of(status: int) -> str:
    """Return the kind of failure of an HTTP status."""
    return _STATUSES.get(status, "server" if status >= 500 else "refused")

"""Spans of requests to chat models, named by OpenTelemetry's conventions for generative AI."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fleet.ground.tracing import spans
from fleet.ground.tracing.spans import OFF

_OPTIONS = {
    "temperature": "gen_ai.request.temperature",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
}


@contextmanager
def chat_span(model: str, request: Mapping[str, object], usage: Mapping[str, int]) -> Iterator[None]:
    """Make the block the span of a request. It never becomes the current span, so generators may use it.

    Args:
        model: The model's name.
        request: The body of the request.
        usage: The endpoint's token counts, complete at the end of the block.
    """
    span = spans.begin(f"chat {model}")
    if span is OFF:
        yield
        return
    span.set({"gen_ai.operation.name": "chat", "gen_ai.request.model": model, "gen_ai.request.stream": True})
    span.set({name: value for key, name in _OPTIONS.items() if isinstance(value := request.get(key), int | float)})
    messages = json.dumps(request.get("messages"), ensure_ascii=False, default=str)
    spans.set_private(span, {"gen_ai.input.messages": messages})
    done = False
    try:
        yield
        done = True
    except GeneratorExit:
        # The caller closed the stream.
        done = True
        raise
    finally:
        if not done:
            span.fail("failed")
        span.set({f"gen_ai.usage.{name}": count for name, count in usage.items()})
        span.end()

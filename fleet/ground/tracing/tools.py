"""Spans of tool calls, named by OpenTelemetry's conventions for generative AI."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from fleet.ground.tracing import spans

Note = Callable[[str, object], None]


def _ignore(outcome: str, result: object) -> None:
    """Record nothing."""


_OFF: AbstractContextManager[Note] = nullcontext(_ignore)


def tool_span(tool: str, call: str, arguments: object) -> AbstractContextManager[Note]:
    """Make the block the span of a call; yield a function that records its outcome (`ok`, `error`, …) and result.

    Args:
        tool: The tool's name.
        call: The model's id of the call.
        arguments: Part of the trace only if FLEET_LOG_PII is true.
    """
    return _tool_span(tool, call, arguments) if spans.are_on() else _OFF


@contextmanager
def _tool_span(tool: str, call: str, arguments: object) -> Iterator[Note]:
    about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "function"}
    with spans.span(f"execute_tool {tool}", about) as span:

        def note(outcome: str, result: object) -> None:
            span.set({"fleet.outcome": outcome})
            spans.set_private(span, {"gen_ai.tool.call.result": _text(result)})
            if outcome != "ok":
                span.fail(outcome)

        span.set({"gen_ai.tool.call.id": call})
        spans.set_private(span, {"gen_ai.tool.call.arguments": _text(arguments)})
        yield note


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

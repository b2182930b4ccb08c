"""The spans of tool calls, with the names of OpenTelemetry's conventions for generative AI."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fleet.ground.tracing import spans
from fleet.ground.tracing.spans import OFF


@contextmanager
def calling(tool: str, call: str, arguments: object) -> Iterator[Callable[[str, object], None]]:
    """Make the block the span of a call; give what takes its outcome (`ok`, `error`, …) and its result.

    Args:
        tool: Its name.
        call: The model's id of the call.
        arguments: Part of the trace only where the operator wants that.
    """
    about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "function"}
    with spans.span(f"execute_tool {tool}", about) as span:

        def note(outcome: str, result: object) -> None:
            if span is OFF:
                return
            span.set({"fleet.outcome": outcome})
            spans.private(span, {"gen_ai.tool.call.result": _text(result)})
            if outcome != "ok":
                span.fail(outcome)

        if span is not OFF:
            span.set({"gen_ai.tool.call.id": call})
            spans.private(span, {"gen_ai.tool.call.arguments": _text(arguments)})
        yield note


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

"""The chat model's answers in OpenAI's shape, whole and in chunks."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from fleet.workbench.conformance.steering.script import Call, letters

Body = dict[str, JsonValue]

_PIECE = re.compile(r"\s*\S{1,8}|\s+")
_ARGUMENT_PIECE = 12


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer; `calls` are names as they were offered and arguments as JSON text."""

    id: str
    model: str
    text: str
    calls: tuple[tuple[str, str], ...]
    prompt_words: int

    @property
    def finish(self) -> str:
        return "tool_calls" if self.calls else "stop"

    def whole(self) -> Body:
        """Return the body of an answer that is not streamed."""
        message: Body = {"role": "assistant", "content": self.text if self.text or not self.calls else None}
        if self.calls:
            message["tool_calls"] = [self._call(at, arguments) for at, (_, arguments) in enumerate(self.calls)]
        choice: Body = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish}
        return self._frame("chat.completion", [choice], usage=self._usage())

    def opening(self) -> Body:
        """Return the first chunk of a streamed answer, which holds nothing yet."""
        return self._chunk({"role": "assistant", "content": "" if self.text or not self.calls else None}, None)

    def pieces(self) -> Iterator[Body]:
        """Yield the chunks with the text and the calls."""
        for piece in _PIECE.findall(self.text):
            yield self._chunk({"content": piece}, None)
        for at, (_, arguments) in enumerate(self.calls):
            yield self._chunk({"tool_calls": [{"index": at, **self._call(at, "")}]}, None)
            for start in range(0, len(arguments), _ARGUMENT_PIECE):
                piece = arguments[start : start + _ARGUMENT_PIECE]
                yield self._chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}, None)

    def closing(self, *, with_usage: bool) -> Iterator[Body]:
        """Yield the last chunks."""
        yield self._chunk({}, self.finish)
        if with_usage:
            yield self._frame("chat.completion.chunk", [], usage=self._usage())

    def _call(self, at: int, arguments: str) -> Body:
        function: Body = {"name": self.calls[at][0], "arguments": arguments}
        return {"id": f"call_{self.id}_{at}", "type": "function", "function": function}

    def _chunk(self, delta: Body, finish: str | None) -> Body:
        choice: Body = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._frame("chat.completion.chunk", [choice])

    def _frame(self, kind: str, choices: list[JsonValue], **fields: JsonValue) -> Body:
        frame: Body = {"id": f"chatcmpl-{self.id}", "object": kind, "created": 0, "model": self.model}
        return {**frame, "choices": choices, **fields}

    def _usage(self) -> Body:
        """Return the usage in words, as there is no tokenizer."""
        said = len(_PIECE.findall(" ".join((self.text, *(arguments for _, arguments in self.calls)))))
        return {"prompt_tokens": self.prompt_words, "completion_tokens": said, "total_tokens": self.prompt_words + said}


def write_call(call: Call, offered: Sequence[str]) -> tuple[str, str]:
    """Return a call as the model writes it: under the name that was offered for the tool, or its own."""
    name, arguments = call
    written = arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
    return find_tool(name, offered), written


def find_tool(name: str, offered: Sequence[str]) -> str:
    """Return which of the offered tools is meant: `self_led_on` or `device__self_led_on` for `self.led.on`.

    The name itself where none is.
    """
    wanted = letters(name)
    same = [tool for tool in offered if letters(tool) == wanted]
    longer = [tool for tool in offered if letters(tool).endswith(wanted)]
    return next(iter((*same, *longer)), name)


def tool_names(tools: Sequence[Mapping[str, JsonValue]]) -> list[str]:
    """Return the names of offered tools."""
    functions = [tool.get("function") for tool in tools]
    return [str(function["name"]) for function in functions if isinstance(function, dict) and "name" in function]

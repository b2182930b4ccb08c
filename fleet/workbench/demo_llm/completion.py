"""The answers of OpenAI's chat completions, whole and in chunks."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from fleet.workbench.demo_llm.prompt_cache import PromptCache
from fleet.workbench.demo_llm.requests import CompletionRequest
from fleet.workbench.demo_llm.turn import Clock, reply

Body = dict[str, JsonValue]

DONE = b"data: [DONE]\n\n"
_PIECE = re.compile(r"\s*[㐀-鿿]{1,2}[^\w\s]*|\s*[^\s㐀-鿿]+|\s+")
_UNIT = re.compile(r"[㐀-鿿]|[^\W㐀-鿿]+|[^\w\s]")
_ARGUMENT_PIECE = 12


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer and what goes around it; a call is a name and arguments as JSON text."""

    id: str
    model: str
    text: str
    calls: Sequence[tuple[str, str]]
    usage: Body
    created: int = 0

    @property
    def finish(self) -> str:
        return "tool_calls" if self.calls else "stop"

    def whole(self) -> Body:
        """Return the body of an answer that is not streamed."""
        message: Body = {"role": "assistant", "content": self.text if self.text or not self.calls else None}
        if self.calls:
            message["tool_calls"] = [self._call(at, arguments) for at, (_, arguments) in enumerate(self.calls)]
        choice: Body = {"index": 0, "message": {**message, "refusal": None}, "logprobs": None}
        return self._frame("chat.completion", [{**choice, "finish_reason": self.finish}], usage=self.usage)

    def chunks(self, *, with_usage: bool) -> Iterator[Body]:
        """Yield the chunks of a streamed answer; the last one holds only the usage, if it is wanted."""
        opening: Body = {"role": "assistant", "content": "" if self.text or not self.calls else None, "refusal": None}
        without: Body = {"usage": None} if with_usage else {}
        for delta in (opening, *self.pieces(), {}):
            choice: Body = {"index": 0, "delta": delta, "logprobs": None}
            choice["finish_reason"] = None if delta else self.finish
            yield self._frame("chat.completion.chunk", [choice], **without)
        if with_usage:
            yield self._frame("chat.completion.chunk", [], usage=self.usage)

    def pieces(self) -> Iterator[Body]:
        """Yield the deltas with the text and the calls."""
        for piece in _PIECE.findall(self.text):
            yield {"content": piece}
        for at, (_, arguments) in enumerate(self.calls):
            yield {"tool_calls": [{"index": at, **self._call(at, "")}]}
            for start in range(0, len(arguments), _ARGUMENT_PIECE):
                piece = arguments[start : start + _ARGUMENT_PIECE]
                yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}

    def _call(self, at: int, arguments: str) -> Body:
        function: Body = {"name": self.calls[at][0], "arguments": arguments}
        return {"id": f"call_{_digest(f'{self.id} {at}')}", "type": "function", "function": function}

    def _frame(self, kind: str, choices: list[JsonValue], **fields: JsonValue) -> Body:
        frame: Body = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return {**frame, "choices": choices, **fields}


def usage(prompt: str, written: str, cached: int = 0) -> Body:
    """Return the usage in words and characters: there is no tokenizer.

    Args:
        prompt: Of the request.
        written: By the model.
        cached: Characters of the prompt that began an earlier one.
    """
    given, output, reused = (len(_UNIT.findall(text)) for text in (prompt, written, prompt[:cached]))
    counts: Body = {"prompt_tokens": given, "completion_tokens": output, "total_tokens": given + output}
    return {**counts, "prompt_tokens_details": {"cached_tokens": reused}}


def complete(request: CompletionRequest, clock: Clock, cache: PromptCache) -> Completion:
    """Return the answer to a request.

    The id follows from the request, so equal requests get equal answers; only their cached tokens may differ.
    """
    answer = reply(request.conversation(), request.offered(), clock)
    calls = [(call.name, call.written) for call in answer.calls]
    prompt = request.model_dump_json(include={"tools"}) + request.model_dump_json(include={"messages"})
    written = " ".join([answer.text, *(f"{name} {arguments}" for name, arguments in calls)])
    counted = usage(prompt, written, cache.reuse(prompt))
    name = f"chatcmpl-{_digest(request.model_dump_json(exclude={'stream', 'stream_options'}))}"
    return Completion(name, request.model, answer.text, calls, counted, int(clock().timestamp()))


def write_event(chunk: Body) -> bytes:
    """Return a chunk as a server-sent event."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]

"""The answers of OpenAI's chat completions, whole and in chunks."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from fleet.workbench.demo_llm.requests import CompletionRequest
from fleet.workbench.demo_llm.turn import Clock, Reply, reply

Body = dict[str, JsonValue]

DONE = b"data: [DONE]\n\n"
_PIECE = re.compile(r"\s*[㐀-鿿]{1,2}[^\w\s]*|\s*[^\s㐀-鿿]+|\s+")
_UNIT = re.compile(r"[㐀-鿿]|[^\W㐀-鿿]+|[^\w\s]")
_ARGUMENT_PIECE = 12


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer and what goes around it. The id follows from the request, so equal requests get equal answers."""

    reply: Reply
    id: str
    created: int
    model: str
    usage: Body

    @property
    def finish(self) -> str:
        return "tool_calls" if self.reply.calls else "stop"

    def whole(self) -> Body:
        """Return the body of an answer that is not streamed."""
        message: Body = {"role": "assistant", "content": None if self.reply.calls else self.reply.text, "refusal": None}
        if self.reply.calls:
            message["tool_calls"] = [*self._calls()]
        choice: Body = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish}
        return self._frame("chat.completion", choices=[choice], usage=self.usage)

    def chunks(self, *, with_usage: bool) -> Iterator[Body]:
        """Yield the chunks of a streamed answer; the last one holds only the usage, if it is wanted."""
        last: Body = {"usage": None} if with_usage else {}
        for delta in (*self._deltas(), {}):
            choice: Body = {
                "index": 0,
                "delta": delta,
                "logprobs": None,
                "finish_reason": None if delta else self.finish,
            }
            yield self._frame("chat.completion.chunk", choices=[choice], **last)
        if with_usage:
            yield self._frame("chat.completion.chunk", choices=[], usage=self.usage)

    def _deltas(self) -> Iterator[Body]:
        yield {"role": "assistant", "content": None if self.reply.calls else "", "refusal": None}
        for piece in _PIECE.findall(self.reply.text):
            yield {"content": piece}
        for at, (call, whole) in enumerate(zip(self.reply.calls, self._calls(), strict=True)):
            yield {"tool_calls": [{"index": at, **whole, "function": {"name": call.name, "arguments": ""}}]}
            for start in range(0, len(call.written), _ARGUMENT_PIECE):
                piece = call.written[start : start + _ARGUMENT_PIECE]
                yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}

    def _calls(self) -> Iterator[Body]:
        for at, call in enumerate(self.reply.calls):
            function: Body = {"name": call.name, "arguments": call.written}
            yield {"id": f"call_{_digest(f'{self.id} {at}')}", "type": "function", "function": function}

    def _frame(self, kind: str, **fields: JsonValue) -> Body:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, **fields}


def complete(request: CompletionRequest, clock: Clock) -> Completion:
    """Return the answer to a request. Its usage is counted in words and characters: there is no tokenizer."""
    answer = reply(request.conversation(), request.offered(), clock)
    prompt = sum(len(_UNIT.findall(message.content)) for message in request.messages)
    written = len(_UNIT.findall(" ".join([answer.text, *(f"{call.name} {call.written}" for call in answer.calls)])))
    usage: Body = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
    asked = request.model_dump_json(exclude={"stream", "stream_options"})
    return Completion(answer, f"chatcmpl-{_digest(asked)}", int(clock().timestamp()), request.model, usage)


def write_event(chunk: Body) -> bytes:
    """Return a chunk as a server-sent event."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]

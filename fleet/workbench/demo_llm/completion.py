"""The answers of OpenAI's chat completions, whole and in chunks."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from fleet.workbench.demo_llm.requests import CompletionRequest
from fleet.workbench.demo_llm.turn import Call, Clock, Reply, reply
from fleet.workbench.demo_llm.units import cut

Body = dict[str, JsonValue]
Finish = Literal["stop", "tool_calls"]

DONE = b"data: [DONE]\n\n"
_PIECE = re.compile(r"\s*[\u3400-\u9fff]{1,2}[^\w\s]*|\s*[^\s\u3400-\u9fff]+|\s+")
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
    def finish(self) -> Finish:
        return "tool_calls" if self.reply.calls else "stop"

    def whole(self) -> Body:
        """Return the body of an answer that is not streamed."""
        message: Body = {"role": "assistant", "content": None if self.reply.calls else self.reply.text, "refusal": None}
        if self.reply.calls:
            message["tool_calls"] = [self._call(at, call) for at, call in enumerate(self.reply.calls)]
        choice: Body = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish}
        return self._frame("chat.completion", choices=[choice], usage=self.usage)

    def chunks(self, *, with_usage: bool) -> Iterator[Body]:
        """Yield the chunks of a streamed answer; the last one holds only the usage, if it is wanted."""
        last: Mapping[str, JsonValue] = {"usage": None} if with_usage else {}
        opening: Body = {"role": "assistant", "content": None if self.reply.calls else "", "refusal": None}
        for delta in (opening, *self._deltas()):
            yield self._chunk(delta, None, last)
        yield self._chunk({}, self.finish, last)
        if with_usage:
            yield self._frame("chat.completion.chunk", choices=[], usage=self.usage)

    def _deltas(self) -> Iterator[Body]:
        for piece in _PIECE.findall(self.reply.text):
            yield {"content": piece}
        for at, call in enumerate(self.reply.calls):
            whole = self._call(at, call)
            yield {"tool_calls": [{"index": at, **whole, "function": {"name": call.name, "arguments": ""}}]}
            written = write_arguments(call)
            for start in range(0, len(written), _ARGUMENT_PIECE):
                piece = written[start : start + _ARGUMENT_PIECE]
                yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}

    def _call(self, at: int, call: Call) -> Body:
        digest = hashlib.sha256(f"{self.id} {at}".encode()).hexdigest()[:24]
        function: Body = {"name": call.name, "arguments": write_arguments(call)}
        return {"id": f"call_{digest}", "type": "function", "function": function}

    def _chunk(self, delta: Body, finish: Finish | None, last: Mapping[str, JsonValue]) -> Body:
        choice: Body = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._frame("chat.completion.chunk", choices=[choice], **last)

    def _frame(self, kind: str, **fields: JsonValue) -> Body:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": "fp_fleet_demo",
            **fields,
        }


def complete(request: CompletionRequest, clock: Clock) -> Completion:
    """Return the answer to a request."""
    answer = reply(request.conversation(), request.offered(), request.choice(), clock)
    asked = request.model_dump_json(exclude={"stream", "stream_options"})
    digest = hashlib.sha256(asked.encode()).hexdigest()[:24]
    return Completion(answer, f"chatcmpl-{digest}", int(clock().timestamp()), request.model, _usage(request, answer))


def write_arguments(call: Call) -> str:
    return json.dumps(dict(call.arguments), ensure_ascii=False)


def write_event(chunk: Body) -> bytes:
    """Return a chunk as a server-sent event."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _usage(request: CompletionRequest, answer: Reply) -> Body:
    """Return the usage in units (words and characters): there is no tokenizer."""
    prompt = sum(len(cut(message.content)) for message in request.messages)
    written = " ".join([answer.text, *(f"{call.name} {write_arguments(call)}" for call in answer.calls)])
    completion = len(cut(written))
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

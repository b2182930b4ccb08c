"""A chat model's streamed answer: payloads in, events of the `Llm` port out."""

from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final

import msgspec
from pydantic import BaseModel, NonNegativeInt, ValidationError

from fleet.adapters.llm.calls import MOST_CALLS, CallMerger, CallPiece
from fleet.adapters.llm.reasoning import ThoughtFilter
from fleet.core.ports import CallsAsked, LlmEvent, TextDelta, ThoughtDelta, TokensUsed, TokenUsage
from fleet.wire.json_text import has_too_many_values, parsing_cost

DONE = b"[DONE]"
LARGEST = 200_000
"""Characters of text and calls in one answer: an hour of speech has 60,000; a model that never ends is cut off."""
_PER_CHARACTER: Final = 256
"""Bytes of chunks, as `parsing_cost` counts them, that are worth a character: a chunk with a word has about as many."""

_ENDLESS = "wrote without an end"
_UNREADABLE = "sent a chunk that cannot be read"


class _Part(BaseModel):
    type: str = ""
    text: str | None = None


class _Delta(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: object = None
    reasoning: object = None
    tool_calls: list[CallPiece] | None = None


class _Details(BaseModel):
    cached_tokens: NonNegativeInt = 0


class _Usage(BaseModel):
    prompt_tokens: NonNegativeInt = 0
    completion_tokens: NonNegativeInt = 0
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: NonNegativeInt = 0
    """DeepSeek's name for cached tokens."""
    cached_tokens: NonNegativeInt = 0
    """Moonshot's name for them."""

    def counted(self) -> TokenUsage:
        details = self.prompt_tokens_details or _Details()
        cached = details.cached_tokens or self.prompt_cache_hit_tokens or self.cached_tokens
        return TokenUsage(self.prompt_tokens, min(cached, self.prompt_tokens), self.completion_tokens)


class _Choice(BaseModel):
    delta: _Delta | None = None
    message: _Delta | None = None
    """In place of `delta` where the endpoint does not stream."""
    finish_reason: str | None = None
    error: object = None


class _Chunk(BaseModel):
    choices: list[_Choice] | None = None
    error: object = None
    usage: object = None


class _PlainDelta(msgspec.Struct, gc=False):
    content: str | None = None
    refusal: None = None
    reasoning_content: None = None
    reasoning: None = None
    tool_calls: None = None


class _PlainChoice(msgspec.Struct, gc=False):
    delta: _PlainDelta
    message: None = None
    finish_reason: None = None
    error: None = None


class _PlainChunk(msgspec.Struct, gc=False):
    choices: list[_PlainChoice]
    error: None = None
    usage: None = None


_PLAIN: Final = msgspec.json.Decoder(_PlainChunk)
"""Nearly every chunk is a piece of text and nothing else. `_Chunk` reads all others, at four times the cost."""


class StreamedAnswer:
    """One streamed answer, with the model's thoughts kept apart; never raises.

    Args:
        taken: Ids of calls that the conversation already holds.
    """

    def __init__(self, taken: Collection[str] = ()) -> None:
        self.fault = ""
        """The fault of the answer; no event follows a fault."""
        self.finished = False
        """Whether the endpoint has marked the answer as complete."""
        self.chunks = 0
        """Number of chunks with text or thoughts."""
        self.usage: dict[str, int] = {}
        """Tokens by their names in traces, if the endpoint reports them."""
        self._used: TokenUsage | None = None
        self._taken = taken
        self._calls = CallMerger()
        self._written = 0
        self.thought = ""
        """The text of `reasoning_content`, the only form of thoughts that endpoints want back."""
        self._thoughts = ThoughtFilter()

    def feed(self, payload: bytes) -> list[LlmEvent]:
        """Take one payload: a chunk of a stream, a whole answer, or `DONE`."""
        if payload == DONE:
            self.finished = True
            return []
        try:
            plain = _PLAIN.decode(payload).choices
        except (ValueError, RecursionError):
            plain = []
        if plain:
            self.chunks += 1
            return self._write(plain[0].delta.content or "", cost=len(payload))
        if has_too_many_values(payload):
            # Each value of a chunk that is read by `_Chunk` costs two microseconds, during which nothing else runs.
            self.fault = _UNREADABLE
            return []
        try:
            chunk = _Chunk.model_validate_json(payload)
        except ValidationError:
            self.fault = _UNREADABLE
            return []
        choice = chunk.choices[0] if chunk.choices else _Choice()
        if chunk.error or choice.error or choice.finish_reason == "error":
            self.fault = "reported an error within its answer"
            return []
        self.chunks += bool(chunk.choices)
        if isinstance(chunk.usage, dict):
            self._count(chunk.usage)
        # A whole message is complete, also without a finish reason.
        self.finished = self.finished or bool(choice.finish_reason) or choice.message is not None
        return self._take(choice.delta or choice.message or _Delta(), parsing_cost(payload))

    def end(self) -> list[LlmEvent]:
        """Return the last events of a complete answer: held back text, then the calls."""
        said, thought = self._thoughts.end()
        events = _events(said, thought)
        if self._used:
            events.append(TokensUsed(self._used))
        if calls := self._calls.finish(self._taken):
            events.append(CallsAsked(calls))
        return events

    def _take(self, delta: _Delta, cost: int) -> list[LlmEvent]:
        for piece in delta.tool_calls or ():
            self._calls.add(piece)
        if self._calls.too_many:
            self.fault = f"asked for more than {MOST_CALLS} calls at once"
            return []
        reasoning = _string(delta.reasoning_content)
        events = self._write(_text(delta), reasoning or _string(delta.reasoning), cost=cost)
        self.thought += "" if self.fault else reasoning
        return events

    def _write(self, text: str, reasoning: str = "", *, cost: int) -> list[LlmEvent]:
        if len(text) > LARGEST:
            self.fault = _ENDLESS
            return []
        said, thought = self._thoughts.feed(text)
        thought = reasoning + thought
        # An empty chunk counts too, and what is around the text: an endpoint may send them without an end.
        self._written += max(1, len(said) + len(thought), cost // _PER_CHARACTER)
        if self._written + self._calls.size > LARGEST:
            self.fault = _ENDLESS
            return []
        return _events(said, thought)

    def _count(self, reported: dict[Any, Any]) -> None:
        """Take the token counts; some endpoints send them with every chunk, growing. Odd ones are no fault."""
        with suppress(ValidationError):
            self._used = _Usage.model_validate(reported).counted()
            self.usage.update(self._used.named())

    @property
    def extras(self) -> dict[str, dict[str, Any]]:
        """Extra fields of the calls, by their ids; complete after `end`."""
        return self._calls.extras


def _events(said: str, thought: str) -> list[LlmEvent]:
    thoughts: list[LlmEvent] = [ThoughtDelta(thought)] if thought else []
    return [*thoughts, TextDelta(said)] if said else thoughts


def _string(field: object) -> str:
    return field if isinstance(field, str) else ""


def _text(delta: _Delta) -> str:
    if isinstance(delta.content, list):
        return "".join(part.text or "" for part in delta.content if part.type == "text")
    return delta.content or delta.refusal or ""

"""Any OpenAI-compatible chat endpoint as an `Llm`."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any

from fleet.core.ports import LlmEvent, Message, ToolCall, ToolOffer
from fleet.errors import ProviderError
from fleet.llm.answer import Answer
from fleet.llm.calls import is_object
from fleet.llm.sse import SseReader, WholeReader
from fleet.provider import Attempts, Body, Endpoint

RETRIES = 2
_REST_SECONDS = 0.25
"""How long the rest of a finished answer's body is waited for; read to its end, its connection may be used again."""


class OpenAiLlm:
    """Streams chat completions.

    Args:
        base_url: Up to and with `/v1`.
        api_key: None where the endpoint needs none.
        model: Its name at the endpoint.
        timeout: Longest silence in seconds before the first token, retries included, and between tokens.
        temperature: The endpoint's own without it.
        max_tokens: Longest answer; the endpoint's own without it.

    Raises:
        ConfigError: `base_url` is no HTTP address.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        model: str,
        timeout: float,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._endpoint = Endpoint("LLM", base_url, api_key)
        self._timeout = timeout
        # OpenAI's newer models refuse the old name, which is the only one that the others know.
        longest = "max_completion_tokens" if self._endpoint.is_openai else "max_tokens"
        self._model = model
        chosen = {"temperature": temperature, longest: max_tokens}
        self._fixed = {name: value for name, value in chosen.items() if value is not None}

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def stream(self, messages: Sequence[Message], tools: Sequence[ToolOffer]) -> AsyncGenerator[LlmEvent, None]:
        """Yield the model's next message; see `fleet.core.ports.Llm`.

        A request that fails in passing is repeated as long as nothing of its answer has been yielded.
        """
        request = {**self._fixed, "messages": [write_message(message) for message in messages]}
        if tools:
            request["tools"] = [write_offer(offer) for offer in tools]
        taken = {call.id for message in messages for call in message.calls}
        deadline = asyncio.get_running_loop().time() + self._timeout
        attempts = Attempts(RETRIES, deadline)
        started = False
        while True:
            try:
                async with aclosing(self._ask(request, Answer(taken), deadline)) as events:
                    async for event in events:
                        started = True
                        yield event
                return
            except ProviderError as error:
                if started:
                    raise
                await attempts.pause(error)

    async def _ask(self, request: dict[str, Any], answer: Answer, deadline: float) -> AsyncGenerator[LlmEvent, None]:
        completions = self._endpoint.client.chat.completions.with_streaming_response
        # Arguments of its own the library checks against their types, 9 ms for 20 messages and 20 tools; the body not.
        asking = completions.create(model=self._model, messages=[], stream=True, extra_body=request)
        async with self._endpoint.open(asking, deadline) as body:
            reader = WholeReader() if body.kind == "application/json" else SseReader()
            data: bytes | None = None
            while data != b"":
                chunks = answer.chunks
                data = await self._read(body, answer, deadline)
                for payload in reader.feed(data) if data else reader.end():
                    for event in answer.feed(payload):
                        yield event
                self._check(answer, ended=not data, too_long=reader.is_too_long)
                # Comments that only keep the connection open are no sign of life.
                if answer.finished:
                    deadline = min(deadline, asyncio.get_running_loop().time() + _REST_SECONDS)
                elif answer.chunks > chunks:
                    deadline = asyncio.get_running_loop().time() + self._timeout
        for event in answer.end():
            yield event

    async def _read(self, body: Body, answer: Answer, deadline: float) -> bytes:
        """Return the next bytes; b"" at the end, which a finished answer may lack."""
        if not answer.finished:
            return await body.read(deadline)
        with suppress(ProviderError):
            return await body.read(deadline)
        return b""

    def _check(self, answer: Answer, *, ended: bool, too_long: bool) -> None:
        if answer.fault:
            raise self._endpoint.failure(answer.fault, retryable=True)
        if too_long:
            raise self._endpoint.failure("sent a line without an end", retryable=False)
        if ended and not answer.finished:
            raise self._endpoint.failure("broke off", retryable=True)


def write_message(message: Message) -> dict[str, Any]:
    """Return a message as the endpoint wants it."""
    written: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "tool":
        written["tool_call_id"] = message.call_id
    if message.calls:
        written["content"] = message.text or None
        written["tool_calls"] = [_write_call(call) for call in message.calls]
    return written


def write_offer(offer: ToolOffer) -> dict[str, Any]:
    """Return a tool as the endpoint wants it."""
    parameters = offer.parameters or {"type": "object", "properties": {}}
    function = {"name": offer.name, "description": offer.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _write_call(call: ToolCall) -> dict[str, Any]:
    # Some endpoints answer 500 to a conversation that holds arguments which their own model wrote badly.
    arguments = call.arguments if is_object(call.arguments) else "{}"
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}

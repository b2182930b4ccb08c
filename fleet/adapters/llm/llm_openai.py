"""Any OpenAI-compatible chat endpoint as an `Llm`."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any

from fleet.adapters.llm.answer import StreamedAnswer
from fleet.adapters.llm.chat_endpoint import ChatEndpoint, RetryAfterAttempts, UnknownModel, UnsupportedFields
from fleet.adapters.llm.chat_request import RequestWriter
from fleet.adapters.llm.model_name import ModelName
from fleet.adapters.llm.sse import BodyReader
from fleet.adapters.model_endpoint import Body
from fleet.core.ports import USUAL, CallsAsked, LlmEvent, LlmOptions, Message, ThoughtDelta, ToolOffer
from fleet.ground.errors import ProviderError
from fleet.ground.loop_yield import LoopYield
from fleet.ground.tracing.models import chat_span

RETRIES = 2
_REST_SECONDS = 0.25
"""Longest wait for the rest of a finished answer's body; only a body read to its end frees its connection for reuse."""

_UNBROKEN = 8 * 1024
"""Bytes of chunks that are parsed before other tasks run: about 10 ms of work, if they are as small as can be."""


class OpenAiLlm:
    """Streams chat completions.

    Args:
        base_url: Up to and with `/v1`.
        api_key: None if the endpoint needs none.
        model: Its name at the endpoint; None to ask the endpoint, see `fleet.adapters.llm.model_name`.
        timeout: Longest silence in seconds before the first token, retries included, and between tokens.
        temperature: Default of requests; None for the endpoint's own.
        max_tokens: Default longest answer; None for the endpoint's own.

    Raises:
        ConfigError: `base_url` is no HTTP address.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        model: str | None,
        timeout: float,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._endpoint = ChatEndpoint("LLM", base_url, api_key)
        self._timeout = timeout
        self._model = ModelName(self._endpoint, model)
        usual = LlmOptions(temperature, max_tokens)
        self._writer = RequestWriter(
            is_openai=self._endpoint.is_openai, is_google=self._endpoint.is_google, usual=usual
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        """Yield the model's next message; see `fleet.core.ports.Llm`.

        A temporary failure is retried as long as only thoughts have been yielded. A refused request is sent again
        without the fields that the endpoint names.
        """
        taken = {call.id for message in messages for call in message.calls}
        deadline = asyncio.get_running_loop().time() + self._timeout
        attempts = RetryAfterAttempts(RETRIES, deadline)
        started = False
        while True:
            request = self._writer.write(messages, tools, options)
            try:
                async with aclosing(self._ask(request, StreamedAnswer(taken), deadline)) as events:
                    async for event in events:
                        started = started or not isinstance(event, ThoughtDelta)
                        yield event
                self._writer.accept()
                return
            except ProviderError as error:
                if started:
                    raise
                if isinstance(error, UnknownModel):
                    self._model.forget()
                if isinstance(error, UnsupportedFields) and self._writer.adapt(request, error.faults):
                    continue
                await attempts.pause(error)

    async def _ask(
        self, request: dict[str, Any], answer: StreamedAnswer, deadline: float
    ) -> AsyncGenerator[LlmEvent, None]:
        model, clock = await self._model.find(deadline), asyncio.get_running_loop().time
        asked = {"model": model, "stream": True, **request}
        with chat_span(model, request, answer.usage):
            async with self._endpoint.post("/chat/completions", deadline, json=asked) as body:
                reader, pauses = BodyReader(), LoopYield(_UNBROKEN)
                data: bytes | None = None
                while data != b"":
                    chunks = answer.chunks
                    data = await self._read(body, answer, deadline)
                    for payload in reader.feed(data) if data else reader.end():
                        for event in answer.feed(payload):
                            yield event
                        await pauses.spend(len(payload))
                        if answer.fault:
                            break
                    self._check(answer, ended=not data, too_long=reader.is_too_long)
                    # Comments that only keep the connection open do not extend the deadline.
                    if answer.finished:
                        deadline = min(deadline, clock() + _REST_SECONDS)
                    elif answer.chunks > chunks:
                        deadline = clock() + self._timeout
                    elif data and clock() >= deadline:
                        # A read does not fail while bytes wait: an endpoint that sends nothing but filling hangs too.
                        raise self._endpoint.explain(TimeoutError())
        for event in answer.end():
            if isinstance(event, CallsAsked):
                self._writer.echoes.keep(event.calls, answer.thought, answer.extras)
            yield event

    async def _read(self, body: Body, answer: StreamedAnswer, deadline: float) -> bytes:
        """Return the next bytes; b"" at the end, or when the rest of a finished answer does not arrive."""
        if not answer.finished:
            return await body.read(deadline)
        with suppress(ProviderError):
            return await body.read(deadline, needed=False)
        return b""

    def _check(self, answer: StreamedAnswer, *, ended: bool, too_long: bool) -> None:
        if answer.fault:
            raise self._endpoint.failure(answer.fault, retryable=True)
        if too_long:
            raise self._endpoint.failure("sent a line without an end", retryable=False)
        if ended and not answer.finished:
            raise self._endpoint.failure("broke off", retryable=True)

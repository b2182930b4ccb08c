"""Descriptions of photos, from any OpenAI-compatible model that accepts images."""

import asyncio
import base64

from fleet.adapters.llm.answer import StreamedAnswer
from fleet.adapters.llm.model_name import ModelName
from fleet.adapters.llm.sse import BodyReader
from fleet.adapters.model_endpoint import Body, ModelEndpoint
from fleet.core.ports import LlmEvent, TextDelta

_PROMPT = (
    "You see a photo that a small voice device took. Answer the question about it in the language of the question, in "
    "one to four short plain sentences, without Markdown. Say so if the photo does not show what is asked for."
)
_MOST_TOKENS = 400


class OpenAiVision:
    """Asks about photos.

    Args:
        base_url: Up to and with `/v1`.
        api_key: None if the endpoint needs none.
        model: Its name at the endpoint; None to ask the endpoint, see `fleet.adapters.llm.model_name`.
        timeout: Longest wait for the whole answer in seconds.

    Raises:
        ConfigError: `base_url` is no HTTP address.
    """

    def __init__(self, base_url: str, api_key: str | None, model: str | None, timeout: float) -> None:
        self._endpoint = ModelEndpoint("VISION", base_url, api_key)
        self._model = ModelName(self._endpoint, model)
        self._timeout = timeout
        self._longest = "max_completion_tokens" if self._endpoint.is_openai else "max_tokens"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def explain(self, jpeg: bytes, question: str) -> str:
        """Return the model's answer.

        Raises:
            ProviderError: The endpoint refused, failed, gave no completion with text, or was too slow.
        """
        picture = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
        asked = [{"type": "text", "text": question}, {"type": "image_url", "image_url": {"url": picture}}]
        messages = [{"role": "system", "content": _PROMPT}, {"role": "user", "content": asked}]
        deadline = asyncio.get_running_loop().time() + self._timeout
        model = await self._model.find(deadline)
        request = {"model": model, "messages": messages, self._longest: _MOST_TOKENS}
        answer = StreamedAnswer()
        async with self._endpoint.post("/chat/completions", deadline, json=request) as body:
            said = await self._read(body, answer, deadline)
        if not said.strip():
            raise self._endpoint.failure("gave no text", retryable=False)
        return said.strip()

    async def _read(self, body: Body, answer: StreamedAnswer, deadline: float) -> str:
        """Return the text of an answer, a whole one or one that is streamed."""
        reader, events = BodyReader(), list[LlmEvent]()
        data: bytes | None = None
        while data != b"" and not answer.finished:
            data = await body.read(deadline)
            for payload in reader.feed(data) if data else reader.end():
                events += answer.feed(payload)
            if answer.fault:
                raise self._endpoint.failure(answer.fault, retryable=False)
            if reader.is_too_long:
                raise self._endpoint.failure("sent an answer without an end", retryable=False)
        if not answer.finished:
            raise self._endpoint.failure("gave no completion", retryable=False)
        return "".join(event.text for event in (*events, *answer.end()) if isinstance(event, TextDelta))

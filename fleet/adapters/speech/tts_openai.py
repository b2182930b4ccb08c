"""Any OpenAI-compatible speech endpoint as a `Tts`."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fleet.adapters.model_endpoint import Attempts, EndpointRefused, ModelEndpoint
from fleet.adapters.speech.unwrap import Unwrapper
from fleet.ground.errors import ProviderError
from fleet.ground.tracing import spans

log = logging.getLogger(__name__)

RETRIES = 1
_PROGRESS = 2 * 0.02
"""Bytes of new audio, for each Hz of its rate, after which the endpoint has its whole time again: 20 ms."""


class OpenAiTts:
    """Asks for PCM and gives it on as it arrives.

    OpenAI itself gets only the fields that it documents. Others are told the sample rate and to stream as well, since
    some send 44.1 kHz or whole files otherwise; an endpoint that refuses these fields is not told them again.

    Args:
        base_url: Up to and with `/v1`.
        api_key: None where the endpoint needs none.
        model: Its name at the endpoint.
        voice: Its name at the endpoint.
        language: Sent along; none without it.
        sample_rate: Of the PCM that the endpoint returns, in Hz; a WAV header wins over it.
        timeout: Longest wait in seconds for the first piece, the retry included, and for each next 20 ms.

    Raises:
        ConfigError: `base_url` is no HTTP address.
    """

    def __init__(  # noqa: PLR0913 - one for each of its settings
        self,
        base_url: str,
        api_key: str | None,
        model: str,
        voice: str,
        language: str | None,
        sample_rate: int,
        timeout: float,
    ) -> None:
        self._endpoint = ModelEndpoint("TTS", base_url, api_key)
        self._model, self._voice = model, voice
        self._sample_rate = sample_rate
        self._timeout = timeout
        self._extras: dict[str, Any] = {"language": language} if language else {}
        if not self._endpoint.is_openai:
            self._extras |= {"sample_rate": sample_rate, "stream": True}

    @property
    def sample_rate(self) -> int:
        """Of the audio that `speak` yields, in Hz."""
        return self._sample_rate

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def speak(self, text: str, language: str) -> AsyncGenerator[bytes, None]:
        """Yield the audio of a sentence; see `fleet.core.ports.Tts`. The endpoint finds the language from the text."""
        if not text.strip():
            return
        spans.current().set({"gen_ai.request.model": self._model})
        deadline = asyncio.get_running_loop().time() + self._timeout
        attempts = Attempts(RETRIES, deadline)
        extras = self._extras
        started = False
        while True:
            try:
                async with aclosing(self._ask(text, extras, deadline)) as pieces:
                    async for piece in pieces:
                        started = True
                        self._keep(extras)
                        yield piece
                return
            except ProviderError as error:
                if started:
                    raise
                if isinstance(error, EndpointRefused) and extras:
                    extras = {}
                else:
                    await attempts.pause(error)

    def _keep(self, extras: dict[str, Any]) -> None:
        """Remember which fields the endpoint has just accepted."""
        if self._extras and not extras:
            log.warning("endpoint refuses fields", extra={"endpoint": str(self._endpoint), "names": [*self._extras]})
            self._extras = extras

    async def _ask(self, text: str, extras: dict[str, Any], deadline: float) -> AsyncGenerator[bytes, None]:
        speech = self._endpoint.client.audio.speech.with_streaming_response
        asking = speech.create(
            input=text, model=self._model, voice=self._voice, response_format="pcm", extra_body=extras
        )
        async with self._endpoint.open(asking, deadline) as body:
            unwrapper = Unwrapper(self._sample_rate, body.kind)
            sounded, new = False, 0
            while piece := await body.read(deadline):
                if pcm := unwrapper.feed(piece):
                    sounded = True
                    new += len(pcm)
                    yield pcm
                self._check(unwrapper)
                # Single bytes are no sign of life.
                if new >= self._sample_rate * _PROGRESS:
                    deadline, new = asyncio.get_running_loop().time() + self._timeout, 0
            rest = unwrapper.end()
            self._check(unwrapper)
            if not sounded and not rest:
                raise self._endpoint.failure("sent no audio", retryable=True)
            if rest:
                yield rest

    def _check(self, unwrapper: Unwrapper) -> None:
        if unwrapper.fault:
            raise self._endpoint.failure(unwrapper.fault, retryable=False)

"""Any OpenAI-compatible speech endpoint as a `Tts`."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from fleet.adapters.model_endpoint import Attempts, EndpointRefused, ModelEndpoint
from fleet.adapters.speech.unwrap import Unwrapper
from fleet.core.ports import USUAL_VOICE, VoiceOptions
from fleet.ground.errors import ProviderError
from fleet.ground.tracing import spans

if TYPE_CHECKING:
    from openai.types.audio import SpeechCreateParams

log = logging.getLogger(__name__)

RETRIES = 1
_PROGRESS = 2 * 0.02
"""Bytes of new audio for each Hz of the sample rate, 20 ms: after so much audio the time limit starts again."""


class OpenAiTts:
    """Requests PCM and yields it as it arrives.

    Requests to OpenAI itself have only the fields that OpenAI documents. Requests to other endpoints also have
    `sample_rate` and `stream`, because some endpoints otherwise send 44.1 kHz or whole files. If an endpoint refuses
    these fields, they are left out from then on.

    Args:
        base_url: Up to and with `/v1`.
        api_key: None if the endpoint needs none.
        model: Its name at the endpoint.
        voice: Its name at the endpoint.
        language: Code for the request; None to send none.
        sample_rate: Of the PCM that the endpoint returns, in Hz. If it returns a WAV file, its header counts.
        timeout: Longest wait in seconds for the first piece, with the retry, and for every further 20 ms.

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

    async def speak(self, text: str, language: str, voice: VoiceOptions = USUAL_VOICE) -> AsyncGenerator[bytes, None]:
        """Yield the audio of a sentence; see `fleet.core.ports.Tts`. The endpoint detects the language itself."""
        if not text.strip():
            return
        spans.current().set({"gen_ai.request.model": self._model})
        deadline = asyncio.get_running_loop().time() + self._timeout
        attempts = Attempts(RETRIES, deadline)
        extras = self._extras
        started = False
        while True:
            try:
                async with aclosing(self._ask(text, extras, deadline, voice)) as pieces:
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
        """Store the extra fields with which the endpoint accepted a request."""
        if self._extras and not extras:
            log.warning("endpoint refuses fields", extra={"endpoint": str(self._endpoint), "names": [*self._extras]})
            self._extras = extras

    async def _ask(
        self, text: str, extras: dict[str, Any], deadline: float, voice: VoiceOptions
    ) -> AsyncGenerator[bytes, None]:
        asked: SpeechCreateParams = {
            "input": text,
            "model": self._model,
            "voice": voice.name or self._voice,
            "response_format": "pcm",
        }
        if voice.speed != USUAL_VOICE.speed:
            asked["speed"] = voice.speed
        async with self._endpoint.post("/audio/speech", deadline, json={**asked, **extras}) as body:
            unwrapper = Unwrapper(self._sample_rate, body.kind)
            sounded, new = False, 0
            while piece := await body.read(deadline):
                if pcm := unwrapper.feed(piece):
                    sounded = True
                    new += len(pcm)
                    yield pcm
                self._check(unwrapper)
                # Only real progress extends the deadline; an endpoint that sends single bytes hangs.
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

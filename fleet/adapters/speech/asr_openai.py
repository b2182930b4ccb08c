"""Any OpenAI-compatible transcription endpoint as an `Asr`."""

import asyncio

from pydantic import BaseModel, ValidationError

from fleet.adapters.model_endpoint import Attempts, ModelEndpoint
from fleet.adapters.speech.pcm import resample, write_wav
from fleet.core.ports import ASR_RATE, Transcript
from fleet.ground.errors import ProviderError
from fleet.ground.tracing import spans

RETRIES = 1


class _Answer(BaseModel):
    text: str
    language: str | None = None


class OpenAiAsr:
    """Sends each utterance as a WAV file.

    Args:
        base_url: Up to and with `/v1`.
        api_key: None if the endpoint needs none.
        model: Its name at the endpoint.
        language: ISO 639-1 code for the request; None to send none.
        sample_rate: Of the WAV file, in Hz.
        timeout: Longest time in seconds for an utterance, the retry included.

    Raises:
        ConfigError: `base_url` is no HTTP address.
    """

    def __init__(
        self, base_url: str, api_key: str | None, model: str, language: str | None, sample_rate: int, timeout: float
    ) -> None:
        self._endpoint = ModelEndpoint("ASR", base_url, api_key)
        self._model = model
        self._language = language
        self._sample_rate = sample_rate
        self._timeout = timeout

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        """Return what was said; see `fleet.core.ports.Asr`. Without audio no request is sent.

        An endpoint has no field for what is only expected.
        """
        spoken = language or self._language or ""
        if not pcm:
            return Transcript("", spoken)
        spans.current().set({"gen_ai.request.model": self._model})
        deadline = asyncio.get_running_loop().time() + self._timeout
        wav = await asyncio.to_thread(_pack, pcm, self._sample_rate)
        attempts = Attempts(RETRIES, deadline)
        while True:
            try:
                return self._parse(await self._send(wav, spoken, deadline), spoken)
            except ProviderError as error:
                await attempts.pause(error)

    async def _send(self, wav: bytes, language: str, deadline: float) -> bytes:
        asked = {"model": self._model, "response_format": "json"}
        asked |= {"language": language} if language else {}
        files = {"file": ("utterance.wav", wav, "audio/wav")}
        async with self._endpoint.post("/audio/transcriptions", deadline, data=asked, files=files) as body:
            return await body.whole(deadline)

    def _parse(self, answer: bytes, spoken: str) -> Transcript:
        try:
            heard = _Answer.model_validate_json(answer)
        except ValidationError:
            raise self._endpoint.failure("gave an answer without a text", retryable=False) from None
        # Some endpoints return the language's English name, which is not a code.
        language = heard.language or ""
        return Transcript(heard.text.strip(), language.lower() if len(language) == 2 else spoken)


def _pack(pcm: bytes, sample_rate: int) -> bytes:
    return write_wav(resample(pcm, ASR_RATE, sample_rate), sample_rate)

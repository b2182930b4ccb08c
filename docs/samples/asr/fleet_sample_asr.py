"""Recognition by a service that takes raw PCM at `/recognize` and answers {"text": …, "language": …}."""

import asyncio

from pydantic import BaseModel, ValidationError

from fleet.adapters.model_endpoint import ModelEndpoint
from fleet.core.ports import ProviderOptions, Transcript
from fleet.ground.errors import ConfigError


class _Answer(BaseModel):
    text: str
    language: str = ""


class PcmAsr:
    """See `fleet.core.ports.Asr`."""

    def __init__(self, base_url: str, api_key: str | None, seconds: float) -> None:
        self._endpoint = ModelEndpoint("ASR", base_url, api_key)
        self._seconds = seconds

    async def transcribe(self, pcm: bytes, language: str = "") -> Transcript:
        deadline = asyncio.get_running_loop().time() + self._seconds
        async with self._endpoint.post("/recognize", deadline, content=pcm) as body:
            answer = await body.whole(deadline)
        try:
            heard = _Answer.model_validate_json(answer)
        except ValidationError:
            raise self._endpoint.failure("gave an answer without a text", retryable=False) from None
        return Transcript(heard.text.strip(), heard.language or language)

    async def aclose(self) -> None:
        await self._endpoint.aclose()


def load(options: ProviderOptions) -> PcmAsr:
    """Return the recogniser; the entry point names this function."""
    if options.base_url is None:
        raise ConfigError("ASR_BASE_URL is missing: the address of the service")
    return PcmAsr(options.base_url, options.api_key, options.seconds)

"""Voices of a service that takes {"text": …, "voice": …} at `/synthesize` and streams raw 16-bit mono PCM."""

import asyncio
from collections.abc import AsyncGenerator

from fleet.adapters.model_endpoint import ModelEndpoint
from fleet.core.ports import USUAL_VOICE, ProviderOptions, VoiceOptions
from fleet.ground.errors import ConfigError


class PcmTts:
    """See `fleet.core.ports.Tts`."""

    def __init__(self, base_url: str, options: ProviderOptions) -> None:
        self._endpoint = ModelEndpoint("TTS", base_url, options.api_key)
        self._voice = options.voice or "default"
        self._seconds = options.seconds
        self.sample_rate = options.sample_rate or 24_000

    async def speak(self, text: str, language: str, voice: VoiceOptions = USUAL_VOICE) -> AsyncGenerator[bytes, None]:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._seconds
        asked = {"text": text, "voice": voice.name or self._voice, "language": language, "speed": voice.speed}
        odd = b""
        async with self._endpoint.post("/synthesize", deadline, json=asked) as body:
            while piece := await body.read(deadline):
                piece = odd + piece
                whole = len(piece) & ~1  # a network cuts samples in two
                odd = piece[whole:]
                if whole:
                    yield piece[:whole]
                deadline = clock() + self._seconds

    async def aclose(self) -> None:
        await self._endpoint.aclose()


def load(options: ProviderOptions) -> PcmTts:
    """Return the voice; the entry point names this function."""
    if options.base_url is None:
        raise ConfigError("TTS_BASE_URL is missing: the address of the service")
    return PcmTts(options.base_url, options)

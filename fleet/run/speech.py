"""Builds the speech engines of an edge from the settings."""

import asyncio
import hashlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import SecretStr

from fleet.adapters.engine_pool import EnginePool
from fleet.adapters.sealing import Sealer
from fleet.adapters.speech.echo_stream import EchoPool
from fleet.adapters.speech.load import SpeechSettings, load_asr, load_tts, load_turn_detector, load_vad
from fleet.adapters.speech.pcm import Resampler
from fleet.adapters.speech.vad_silero import SileroVad
from fleet.core.ports import ASR_RATE, Asr, Tts, TurnDetector
from fleet.ground.settings import Settings, load
from fleet.ground.settings.slices import slice_of
from fleet.wire.agents import CompiledAgent, Endpoint

MOST_ENGINES: Final = 16
"""Recognisers of agents in one process, and as many engines of voices."""


@dataclass(frozen=True, slots=True)
class SpeechEngines:
    """Voice activity detection, recognition, turn detection and voice of an edge: engines or clients of endpoints."""

    vad: SileroVad
    asr: Asr
    tts: Tts
    turn_detector: TurnDetector
    echo: EchoPool | None = None
    """Has echo cancellers, if the settings ask for them."""

    async def close(self) -> None:
        """Close the connections and threads."""
        await self.asr.aclose()
        await self.turn_detector.aclose()
        await self.tts.aclose()


class AgentEngines:
    """The speech engines that agents choose; see `fleet.roles.edge.agents.AgentSpeech`.

    Args:
        settings: Of the process.
        usual: The engines of the settings.
        sealer: Decrypts the keys of providers.
    """

    def __init__(self, settings: SpeechSettings, usual: SpeechEngines, sealer: Sealer) -> None:
        self._settings = settings
        self._usual = usual
        self._sealer = sealer
        self._asr, self._tts = EnginePool[Asr](MOST_ENGINES), EnginePool[Tts](MOST_ENGINES)

    async def find_asr(self, agent: CompiledAgent) -> Asr:
        """Return the recogniser of an agent."""
        endpoint, model = agent.endpoints.get("recognition"), agent.document.recognition.model
        if endpoint is None and model is None:
            return self._usual.asr
        settings = self._with_endpoint("asr", endpoint, model)

        async def load(stack: AsyncExitStack) -> Asr:
            asr = await asyncio.to_thread(load_asr, settings)
            stack.push_async_callback(asr.aclose)
            return asr

        return await self._asr.find(_key(endpoint, model), load)

    async def find_tts(self, agent: CompiledAgent) -> tuple[Tts, str]:
        """Return the engine of an agent's voice, and its name."""
        endpoint, model = agent.endpoints.get("voice"), agent.document.voice.model
        if endpoint is None and model is None:
            return self._usual.tts, ""
        settings = self._with_endpoint("tts", endpoint, model)
        if endpoint:
            rate = endpoint.sample_rate or settings.tts_sample_rate
            settings = replace(settings, tts_voice=endpoint.voice or settings.tts_voice, tts_sample_rate=rate)

        async def load(stack: AsyncExitStack) -> Tts:
            tts = await asyncio.to_thread(load_tts, settings)
            stack.push_async_callback(tts.aclose)
            return tts

        name = _key(endpoint, model)
        return await self._tts.find(name, load), name

    async def aclose(self) -> None:
        """Close the engines; not those of the settings."""
        await self._asr.aclose()
        await self._tts.aclose()

    def _with_endpoint(self, kind: str, endpoint: Endpoint | None, model: str | None) -> SpeechSettings:
        """Return settings with the provider of an agent for `asr` or `tts`."""
        name = model or (endpoint.model if endpoint else None)
        changed: dict[str, Any] = {f"{kind}_model": name} if name else {}
        if endpoint:
            key = self._sealer.unseal(endpoint.key)
            changed |= {
                f"{kind}_provider": endpoint.adapter,
                f"{kind}_base_url": endpoint.base_url,
                f"{kind}_api_key": SecretStr(key) if key else None,
            }
        return replace(self._settings, **changed, model_fields_set=self._settings.model_fields_set | changed.keys())


def _key(endpoint: Endpoint | None, model: str | None) -> str:
    named = f"{model} {endpoint.model_dump_json() if endpoint else ''}"
    return hashlib.sha256(named.encode()).hexdigest()[:24]


async def load_speech(settings: Settings) -> SpeechEngines:
    """Load the engines in parallel threads; takes a few seconds."""
    wanted = slice_of(settings, SpeechSettings)
    async with asyncio.TaskGroup() as group:
        vad = group.create_task(asyncio.to_thread(load_vad, wanted), name="load vad")
        asr = group.create_task(asyncio.to_thread(load_asr, wanted), name="load asr")
        tts = group.create_task(asyncio.to_thread(load_tts, wanted), name="load tts")
        turn = group.create_task(asyncio.to_thread(load_turn_detector, wanted), name="load turn detector")
    echo = EchoPool() if settings.echo_cancellation == "on" else None
    return SpeechEngines(vad.result(), asr.result(), tts.result(), turn.result(), echo)


async def synthesise(text: str) -> bytes:
    """Return a sentence as 16 kHz PCM in the voice of the settings."""
    tts = await asyncio.to_thread(load_tts, slice_of(load(), SpeechSettings))
    resampler = Resampler(tts.sample_rate, ASR_RATE)
    pcm = b"".join([resampler.feed(piece) async for piece in tts.speak(text, "")])
    return pcm + resampler.flush()

"""Builds the speech engines of an edge from the settings."""

import asyncio
from dataclasses import dataclass

from fleet.adapters.speech.echo_canceller import load_canceller
from fleet.adapters.speech.echo_stream import EchoPool
from fleet.adapters.speech.load import SpeechSettings, load_asr, load_tts, load_turn_detector, load_vad
from fleet.adapters.speech.pcm import Resampler
from fleet.adapters.speech.vad_silero import SileroVad
from fleet.core.ports import ASR_RATE, Asr, Tts, TurnDetector
from fleet.ground.settings import Settings, load
from fleet.ground.settings.slices import slice_of


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


async def load_speech(settings: Settings) -> SpeechEngines:
    """Load the engines in parallel threads; takes a few seconds."""
    wanted = slice_of(settings, SpeechSettings)
    async with asyncio.TaskGroup() as group:
        vad = group.create_task(asyncio.to_thread(load_vad, wanted), name="load vad")
        asr = group.create_task(asyncio.to_thread(load_asr, wanted), name="load asr")
        tts = group.create_task(asyncio.to_thread(load_tts, wanted), name="load tts")
        turn = group.create_task(asyncio.to_thread(load_turn_detector, wanted), name="load turn detector")
        cancelled = settings.echo_cancellation == "on"
        canceller = group.create_task(asyncio.to_thread(load_canceller), name="load canceller") if cancelled else None
    echo = EchoPool(canceller.result()) if canceller else None
    return SpeechEngines(vad.result(), asr.result(), tts.result(), turn.result(), echo)


async def synthesise(text: str) -> bytes:
    """Return a sentence as 16 kHz PCM in the voice of the settings."""
    tts = await asyncio.to_thread(load_tts, slice_of(load(), SpeechSettings))
    resampler = Resampler(tts.sample_rate, ASR_RATE)
    pcm = b"".join([resampler.feed(piece) async for piece in tts.speak(text, "")])
    return pcm + resampler.flush()

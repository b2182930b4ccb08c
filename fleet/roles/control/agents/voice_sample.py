"""Let the voice of a provider read a text, so that a person can hear it."""

import asyncio
import base64
import io
import time
import wave
from contextlib import aclosing

from fleet.core.ports import Tts, VoiceOptions
from fleet.ground.errors import ProviderError
from fleet.wire.control.providers import VoiceSample, VoiceTrial

SAMPLE_SECONDS = 20.0
LONGEST_SOUND = 30
"""Seconds of sound that are kept; the rest of a longer text is not heard."""
_WIDTH = 2


async def sample_voice(tts: Tts, trial: VoiceTrial) -> VoiceSample:
    """Return what a voice makes of a text.

    Raises:
        ProviderError: It failed, took too long, or was silent.
    """
    begun, first, sound = time.monotonic(), 0.0, bytearray()
    most = LONGEST_SOUND * tts.sample_rate * _WIDTH
    try:
        async with (
            asyncio.timeout(SAMPLE_SECONDS),
            aclosing(tts.speak(trial.text, "", VoiceOptions(trial.voice))) as pieces,
        ):
            async for piece in pieces:
                first = first or time.monotonic() - begun
                sound += piece
                if len(sound) >= most:
                    break
    except TimeoutError:
        raise ProviderError(f"the voice was not ready within {SAMPLE_SECONDS:g} s", retryable=True) from None
    if not sound:
        raise ProviderError("the voice made no sound", retryable=False)
    seconds = time.monotonic() - begun
    wav = base64.b64encode(_wav(bytes(sound[:most]), tts.sample_rate)).decode()
    return VoiceSample(wav=wav, first_seconds=round(first, 3), seconds=round(seconds, 3))


def _wav(pcm: bytes, rate: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(_WIDTH)
        sound.setframerate(rate)
        sound.writeframes(pcm[: len(pcm) // _WIDTH * _WIDTH])
    return file.getvalue()

"""Recognises the answers: fleet's own recognition, applied to the sound that the device played."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

from fleet.adapters.speech.asr_whisper import WhisperAsr
from fleet.workbench.demo.acts import Answer
from fleet.workbench.sim.audio.recording import read_recording


async def transcribe_answers(answers: Iterable[Answer]) -> None:
    """Fill in what is heard in each answer's WAV file.

    Raises:
        ConfigError: The recognition model is missing.
        ProviderError: It failed.
    """
    async with AsyncExitStack() as stack:
        listeners: dict[str, WhisperAsr] = {}
        for answer in answers:
            language = answer.line.language
            if language not in listeners:
                listeners[language] = await asyncio.to_thread(WhisperAsr, (language,))
                stack.push_async_callback(listeners[language].aclose)
            pcm = await asyncio.to_thread(read_recording, answer.wav)
            answer.heard = (await listeners[language].transcribe(pcm)).text

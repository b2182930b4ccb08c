"""Transcribes the answers: applies fleet's recognition to the audio that the device played."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

from fleet.adapters.speech.asr_whisper import WhisperAsr
from fleet.workbench.demo.results import TurnResult
from fleet.workbench.sim.audio.recording import read_recording


async def transcribe_answers(answers: Iterable[TurnResult]) -> None:
    """Set `heard` of each answer to the transcript of its WAV file.

    Raises:
        ConfigError: The recognition model is missing.
        ProviderError: Recognition failed.
    """
    async with AsyncExitStack() as stack:
        recognisers: dict[str, WhisperAsr] = {}
        for answer in answers:
            language = answer.line.language
            if language not in recognisers:
                recognisers[language] = await asyncio.to_thread(WhisperAsr, (language,))
                stack.push_async_callback(recognisers[language].aclose)
            pcm = await asyncio.to_thread(read_recording, answer.wav)
            answer.heard = (await recognisers[language].transcribe(pcm)).text

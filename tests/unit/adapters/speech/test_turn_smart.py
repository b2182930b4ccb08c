"""The turn model on recordings of the repository, whole and cut off."""

import asyncio
import wave
from pathlib import Path

import pytest

from fleet.adapters.speech.turn_smart import SmartTurn
from fleet.core.ports import ASR_RATE
from fleet.ground.errors import ProviderError

RECORDINGS = Path(__file__).parents[4] / "fleet" / "workbench" / "demo" / "recordings"
BYTES = 2
"""Bytes of a sample."""


def recording(name: str) -> bytes:
    with wave.open(str(RECORDINGS / f"{name}.wav")) as file:
        return file.readframes(file.getnframes())


async def judge(pcm: bytes) -> float:
    model = SmartTurn()
    try:
        # A busy machine may take longer than users would wait.
        return await asyncio.to_thread(model._judge, pcm)
    finally:
        await model.aclose()


@pytest.mark.parametrize("name", ["en_battery", "en_time", "en_volume", "zh_battery", "zh_time", "zh_volume"])
async def test_a_whole_command_sounds_finished(name: str) -> None:
    assert await judge(recording(name)) > 0.9


async def test_a_command_that_breaks_off_sounds_less_finished() -> None:
    pcm = recording("en_time")
    assert await judge(pcm[: len(pcm) // 2 // BYTES * BYTES]) < 0.9


async def test_of_a_long_utterance_the_end_counts() -> None:
    pcm = recording("en_time")
    silence = bytes(BYTES * ASR_RATE * 8)
    assert await judge(silence + pcm) == pytest.approx(await judge(pcm), abs=0.02)


async def test_a_closed_detector_says_so() -> None:
    model = SmartTurn()
    await model.aclose()
    with pytest.raises(ProviderError):
        await model.finished(bytes(BYTES * ASR_RATE))

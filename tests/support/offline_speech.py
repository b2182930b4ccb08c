"""The offline engines, loaded once in a test run: they take seconds and half a gigabyte."""

from functools import cache

import numpy as np
import pytest
import soxr

from fleet.adapters.speech import asr_whisper
from fleet.adapters.speech.asr_whisper import WhisperAsr
from fleet.adapters.speech.tts_offline import OfflineTts
from fleet.adapters.speech.vad_silero import SileroVad

PATIENCE = 300.0
"""Seconds for a piece: what runs in real time may leave these tests little of the processors."""


@cache
def whisper() -> WhisperAsr:
    return WhisperAsr(("en", "zh"), limit=PATIENCE)


@cache
def whisper_of_chinese() -> WhisperAsr:
    """Recognition of one language, with the model that the other one has loaded."""
    loaded = whisper()._model
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asr_whisper, "_load", lambda _languages, _folder: loaded)
        return WhisperAsr(("zh",), limit=PATIENCE)


@cache
def voices() -> OfflineTts:
    # What the Chinese voice speaks at start in a server takes as long as all else here.
    return OfflineTts("zf_xiaoxiao", limit=PATIENCE, expected=("en",))


@cache
def silero() -> SileroVad:
    return SileroVad.load(None)


def to_16k(pcm: bytes, rate: int) -> bytes:
    resampled: bytes = soxr.resample(np.frombuffer(pcm, "<i2"), rate, 16_000).astype("<i2").tobytes()
    return resampled

import asyncio
from pathlib import Path

import numpy as np
import pytest

from fleet.adapters.speech.asr_whisper import LONGEST_WINDOW, PROMPTS, WhisperAsr
from fleet.core.ports import Transcript
from fleet.core.text.phantoms import is_made_of
from fleet.ground.errors import ConfigError
from fleet.ground.metrics import turns
from tests.support.offline_speech import whisper, whisper_of_chinese
from tests.support.recordings import recordings
from tests.support.word_errors import error_rate

pytestmark = pytest.mark.speech

LIMITS = {"en": 0.04, "zh": 0.10}
"""The upper ends of what the study measured: English 0-4 % of the words, Chinese 4-10 % of the characters."""
STOP_PLAYING, AFTER_STOP = 6, round(1.18 * 16_000) * 2
"""A recording, and where its last words begin, which are the prompt's: 停止 | 播放音乐."""


@pytest.mark.parametrize("which", [slice(None, None, 2), pytest.param(slice(None), marks=pytest.mark.slow)])
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_commands_are_understood_in_their_language(language: str, which: slice) -> None:
    said = recordings(language)[which]
    async with asyncio.timeout(600):
        heard = [await whisper().transcribe(recording.pcm()) for recording in said]
    assert {transcript.language for transcript in heard} == {language}
    pairs = [(recording.text, transcript.text) for recording, transcript in zip(said, heard, strict=True)]
    assert error_rate(pairs, language) <= LIMITS[language], pairs


@pytest.mark.parametrize("which", [slice(3), pytest.param(slice(None), marks=pytest.mark.slow)])
@pytest.mark.parametrize(("spoken", "expected"), [("en", "en"), ("en", "zh"), ("zh", "en"), ("zh", "zh")])
async def test_what_was_said_is_understood_whatever_language_is_expected(
    spoken: str, expected: str, which: slice
) -> None:
    said = recordings(spoken)[which]
    async with asyncio.timeout(600):
        heard = [await whisper().transcribe(recording.pcm(), expected=expected) for recording in said]
    assert {transcript.language for transcript in heard} == {spoken}
    pairs = [(recording.text, transcript.text) for recording, transcript in zip(said, heard, strict=True)]
    assert error_rate(pairs, spoken) <= LIMITS[spoken], pairs


async def test_a_click_shorter_than_any_word_is_no_utterance() -> None:
    assert await whisper().transcribe(bytes(2000)) == Transcript("")


async def test_silence_after_an_utterance_adds_nothing() -> None:
    pcm = recordings("en")[9].pcm()
    async with asyncio.timeout(600):
        heard = await whisper().transcribe(pcm + bytes(32_000 * 40))
    assert heard.text.startswith("Turn up the volume")


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_nothing_is_left_out_of_an_utterance_longer_than_a_window(language: str) -> None:
    said = recordings(language)
    pcm = bytes(6_400).join(recording.pcm() for recording in said)
    pcm = (pcm + pcm)[: 32_000 * 38]
    assert len(pcm) > 32_000 * LONGEST_WINDOW
    async with asyncio.timeout(600):
        heard = await whisper().transcribe(pcm)
    text = heard.text.casefold()
    for words in {"en": ("living room", "seven", "volume"), "zh": ("打开", "闹钟", "声音")}[language]:
        assert words in text or words.replace("seven", "7") in text, heard.text


async def test_a_single_language_is_taken_as_given() -> None:
    async with asyncio.timeout(600):
        heard = await whisper_of_chinese().transcribe(recordings("zh")[1].pcm())
    assert heard == Transcript("关闭卧室的灯。", "zh")


async def test_the_prompt_that_leaks_into_babble_is_dropped_and_the_same_words_are_kept_when_somebody_says_them() -> (
    None
):
    said = [np.frombuffer(recording.pcm(), "<i2").astype(float) for recording in recordings("zh")]
    dropped = turns.phantoms.read()[("prompt",)]
    async with asyncio.timeout(600):
        babble = [await whisper_of_chinese().transcribe(_babble(said, seed)) for seed in (3, 7, 21)]
        command = await whisper_of_chinese().transcribe(recordings("zh")[STOP_PLAYING].pcm()[AFTER_STOP:])
    assert not [heard.text for heard in babble if is_made_of(heard.text, PROMPTS["zh"])]
    assert turns.phantoms.read()[("prompt",)] > dropped
    assert command.text.startswith("播放音乐")


def _babble(said: list[np.ndarray], seed: int) -> bytes:
    """Return a second of three voices that speak backwards."""
    rng = np.random.default_rng(seed)
    mixed = np.zeros(16_000)
    for _ in range(3):
        mixed += np.roll(np.resize(said[rng.integers(len(said))], 16_000)[::-1], rng.integers(16_000)) / 3
    return mixed.astype("<i2").tobytes()


@pytest.mark.parametrize("languages", [(), ("en", "xx")])
def test_a_language_that_whisper_does_not_know_is_refused(languages: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="does not know the language"):
        WhisperAsr(languages)


def test_a_model_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "whisper-model.bin").write_bytes(b"no model")
    with pytest.raises(ConfigError, match=r"whisper-model\.bin cannot be loaded"):
        WhisperAsr(("en",), tmp_path)

import asyncio
from pathlib import Path

import numpy as np
import pytest

from fleet.adapters.speech import tts_hibari, tts_kokoro
from fleet.adapters.speech.prebuffer import PrebufferEstimator
from fleet.adapters.speech.tts_hibari import HibariVoice
from fleet.adapters.speech.tts_kokoro import load_styles
from fleet.adapters.speech.tts_offline import RATE, OfflineTts
from fleet.ground.errors import ConfigError
from tests.support.offline_speech import to_16k, voices, whisper
from tests.support.word_errors import error_rate

pytestmark = pytest.mark.speech

# The first one of each language has the most in it: by default it stands for all.
ENGLISH = [
    "It is 25 degrees, so take a hat with you.",
    "The living room light is on now.",
    "Your alarm is set for eight o'clock.",
]
CHINESE = [
    "音量是30%，温度是25度。",
    "好的，客厅的灯已经打开了。",
    "对不起，我没有听清楚，请再说一遍。",
    "外面正在下雨，出门请带伞。",
]


LIMIT = 600
"""Seconds for one text: how fast a busy machine speaks is not tested."""
SPOKEN: dict[str, bytes] = {}


async def speak(text: str, language: str = "") -> list[bytes]:
    async with asyncio.timeout(LIMIT):
        return [piece async for piece in voices().speak(text, language)]


async def spoken(text: str) -> bytes:
    """Return a whole text, said once for all tests: a second of it costs most of a second of a core."""
    if text not in SPOKEN:
        SPOKEN[text] = b"".join(await speak(text))
    return SPOKEN[text]


@pytest.mark.parametrize(
    ("language", "texts", "limit"),
    # The study read back 0 % wrong words and 4-5 % wrong characters; so few sentences need room for one or two more.
    [
        ("en", ENGLISH[:1], 0.05),
        ("zh", CHINESE[:1], 0.15),
        pytest.param("en", ENGLISH, 0.05, marks=pytest.mark.slow),
        pytest.param("zh", CHINESE, 0.15, marks=pytest.mark.slow),
    ],
)
async def test_what_is_spoken_is_understood(language: str, texts: list[str], limit: float) -> None:
    pairs = []
    for text in texts:
        heard = await whisper().transcribe(to_16k(await spoken(text), RATE))
        assert heard.language == language
        pairs.append((text, heard.text))
    assert error_rate(pairs, language) <= limit, pairs


async def test_english_words_in_chinese_are_spoken() -> None:
    plain, mixed = await speak("连接好了。"), await speak("Bluetooth连接好了。")
    assert len(b"".join(mixed)) > len(b"".join(plain)) + RATE // 2


async def test_a_long_sentence_begins_with_a_short_piece_but_on_a_slow_machine_when_all_of_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "好的，天气晴朗，记得带伞。"
    monkeypatch.setattr(PrebufferEstimator, "can_start", lambda *_: True)  # as on a machine that is quick enough
    pieces = await speak(text)
    assert len(pieces) >= 3
    assert len(pieces[0]) < 2 * RATE * 1.5
    monkeypatch.setattr(PrebufferEstimator, "can_start", lambda _self, _ready, left: not left)
    assert await speak(text) == [b"".join(pieces)]


@pytest.mark.parametrize("text", [ENGLISH[0], CHINESE[0]])
async def test_there_is_little_silence_at_the_ends(text: str) -> None:
    audio = np.abs(np.frombuffer(await spoken(text), "<i2"))
    loud = np.flatnonzero(audio > 400)
    assert loud[0] < 0.06 * RATE  # its listener waits
    assert len(audio) - loud[-1] < 0.17 * RATE


async def test_both_voices_are_about_equally_loud() -> None:
    levels = [
        np.sqrt(np.mean(np.frombuffer(await spoken(text), "<i2").astype(np.float64) ** 2))
        for text in (ENGLISH[0], CHINESE[0])
    ]
    assert 0.6 < levels[0] / levels[1] < 1.6


@pytest.mark.parametrize("text", ["", "   ", "🙂", "，。", "…"])
async def test_what_nobody_can_read_is_no_sound(text: str) -> None:
    assert await speak(text) == []


@pytest.mark.parametrize("language", ["zh", "de", "en"])
async def test_a_language_that_does_not_fit_the_text_is_spoken_all_the_same(language: str) -> None:
    assert await speak("Hello world.", language)
    assert await speak("你好。", language)


async def test_an_opening_is_kept_for_the_voice_that_said_it() -> None:
    english, chinese = await speak("Hello.", "en"), await speak("Hello.", "zh")
    assert english != chinese
    assert (await speak("Hello.", "en"), await speak("Hello.", "zh")) == (english, chinese)


@pytest.mark.parametrize("written", ["3*4", "3 * 4", "3 × 4"])
def test_an_asterisk_between_digits_is_read_as_times(written: str) -> None:
    voice = voices()._english.voice
    assert isinstance(voice, HibariVoice)
    assert voice.phonemes(written) == voice.phonemes("3 times 4")


@pytest.mark.parametrize("expected", [("en", "zh"), ("en",), ("de",)])
def test_the_chinese_voice_speaks_at_start_only_for_users_who_may_hear_it(
    monkeypatch: pytest.MonkeyPatch, expected: tuple[str, ...]
) -> None:
    said: dict[str, list[str]] = {"hibari": [], "kokoro": []}

    def speaker(name: str) -> type:
        class Speaker:
            def __init__(self, *_: object) -> None: ...

            def phonemes(self, text: str) -> str:
                return text

            def synthesize(self, text: str, _: float) -> np.ndarray:
                said[name].append(text)
                return np.ones(RATE, np.float32)

        return Speaker

    monkeypatch.setattr(tts_hibari, "HibariVoice", speaker("hibari"))
    monkeypatch.setattr(tts_kokoro, "KokoroVoice", speaker("kokoro"))
    OfflineTts("zf_xiaoxiao", expected=expected)
    assert len(said["hibari"]) == 2
    assert len(said["kokoro"]) == (4 if "zh" in expected else 0)


def test_an_unknown_voice_is_named() -> None:
    with pytest.raises(ConfigError, match="nobody"):
        OfflineTts("nobody")


@pytest.mark.parametrize(("content", "fault"), [(b"no array", "cannot be read"), (None, "has the shape")])
def test_a_voice_that_is_none_is_named(tmp_path: Path, content: bytes | None, fault: str) -> None:
    file = tmp_path / "zf_mine.f16.npy"
    if content is None:
        np.save(file, np.zeros((3, 256), np.float16))
    else:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=fault):
        load_styles("zf_mine", tmp_path)

"""What is said or sounds over an answer: noises, backchannels, and words that want to interrupt. PCM at 16 kHz."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.pcm import resample
from fleet.core.ports import Tts

RATE = 16_000
Kind = Literal["noise", "backchannel", "words"]
_Sound = NDArray[np.float64]

BACKCHANNELS = {
    "en": ("Mm-hmm.", "Uh-huh.", "Okay.", "Yeah.", "Right.", "I see.", "Oh, okay.", "Yes, yes."),
    "zh": ("嗯。", "对。", "好的。", "哦。", "是的。", "嗯嗯。", "明白了。", "对对对。"),
}
INTERRUPTIONS = {
    "en": (
        "Stop.",
        "Wait a moment.",
        "Stop talking, please.",
        "What time is it?",
        "Turn the volume down.",
        "No, tell me about the weather.",
        "How is the battery?",
        "Who painted the doors?",
        "Hold on, I have a question.",
        "Can you say that in Chinese?",
    ),
    "zh": (
        "停。",
        "等一下。",
        "别说了。",
        "现在几点？",
        "把音量调小一点。",
        "不是，我想问天气。",
        "电量还有多少？",
        "请换一个故事。",
        "等等，我有一个问题。",
        "你能说英语吗？",
    ),
}
_SPEAKERS = (1.0, 0.92, 1.08, 0.96, 1.12)
"""Rates at which the voices are played, so that they sound like more people."""
_LEVEL = 0.12
"""Effective value of every sound, of full scale 1; a recorded command has about as much."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """A sound over an answer."""

    kind: Kind
    name: str
    pcm: bytes


def noises(count: int, seed: int = 1) -> list[Overlap]:
    """Return so many different noises of a room and of people."""
    makers = (_cough, _knock, _clatter, _hum, _throat)
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        make = makers[number % len(makers)]
        found.append(Overlap("noise", make.__name__.strip("_"), _pcm(make(random), RATE)))
    return found


async def spoken(tts: Tts, kind: Kind, texts: Sequence[tuple[str, str]]) -> list[Overlap]:
    """Return texts as speech, in the voice of their language at several pitches.

    Args:
        tts: The voices.
        kind: Of the overlaps.
        texts: Pairs of language and text.
    """
    found = []
    for number, (language, text) in enumerate(texts):
        pcm = b"".join([piece async for piece in tts.speak(text, language)])
        pitch = _SPEAKERS[number // 2 % len(_SPEAKERS)]
        sound = np.frombuffer(resample(pcm, round(tts.sample_rate * pitch), RATE), "<i2") / 32768
        found.append(Overlap(kind, text, _pcm(sound, RATE)))
    return found


def texts_of(lists: Mapping[str, Sequence[str]], count: int) -> list[tuple[str, str]]:
    """Return so many pairs of language and text, the languages in turn."""
    languages = list(lists)
    pairs = []
    for number in range(count):
        language = languages[number % len(languages)]
        pairs.append((language, lists[language][number // len(languages) % len(lists[language])]))
    return pairs


def _pcm(sound: _Sound, rate: int) -> bytes:
    loud = np.sqrt(np.mean(np.square(sound))) or 1.0
    quiet = np.zeros(rate // 10)
    return (np.clip(np.concatenate((quiet, sound * (_LEVEL / loud), quiet)), -1, 1) * 32767).astype("<i2").tobytes()


def _burst(random: np.random.Generator, seconds: float, decay: float) -> _Sound:
    count = round(seconds * RATE)
    return random.standard_normal(count) * np.exp(-np.arange(count) / RATE / decay)


def _formants(sound: _Sound, hertz: Sequence[float]) -> _Sound:
    spectrum, frequencies = np.fft.rfft(sound), np.fft.rfftfreq(len(sound), 1 / RATE)
    shape = sum((np.exp(-(((frequencies - one) / 250) ** 2)) for one in hertz), frequencies * 0 + 0.05)
    shaped: _Sound = np.fft.irfft(spectrum * shape, len(sound))
    return shaped


def _cough(random: np.random.Generator) -> _Sound:
    """Two or three bursts of breath through a throat."""
    parts: list[_Sound] = []
    for _ in range(int(random.integers(2, 4))):
        first = float(random.uniform(400, 900))
        hertz = (first, 2.4 * first, 3.6 * first)
        parts += [_formants(_burst(random, random.uniform(0.15, 0.3), 0.08), hertz), np.zeros(RATE // 12)]
    return np.concatenate(parts)


def _knock(random: np.random.Generator) -> _Sound:
    """Knocks on wood."""
    parts: list[_Sound] = []
    for _ in range(int(random.integers(2, 5))):
        parts += [_formants(_burst(random, 0.12, 0.02), (random.uniform(150, 400),)), np.zeros(RATE // 10)]
    return np.concatenate(parts)


def _clatter(random: np.random.Generator) -> _Sound:
    """Dishes: short high rings."""
    times = np.arange(round(0.7 * RATE)) / RATE
    sound = np.zeros(len(times))
    for _ in range(8):
        begin, hertz = random.uniform(0, 0.5), random.uniform(1500, 6000)
        sound += np.where(times >= begin, np.sin(2 * np.pi * hertz * times) * np.exp(-(times - begin) / 0.03), 0)
    return sound


def _hum(random: np.random.Generator) -> _Sound:
    """A machine that starts and stops."""
    times = np.arange(round(random.uniform(0.8, 1.6) * RATE)) / RATE
    base = random.uniform(60, 140)
    tone = sum((np.sin(2 * np.pi * base * nth * times) / nth for nth in range(1, 12)), times * 0)
    sound: _Sound = tone * np.sin(np.pi * times / times[-1]) + 0.1 * random.standard_normal(len(times))
    return sound


def _throat(random: np.random.Generator) -> _Sound:
    """A throat that is cleared: a rough low voice without a word."""
    times = np.arange(round(random.uniform(0.3, 0.6) * RATE)) / RATE
    phase = np.cumsum(random.uniform(70, 110) * (1 + 0.2 * random.standard_normal(len(times)))) / RATE
    pulses = np.maximum(0, np.sin(2 * np.pi * phase)) ** 8 + 0.3 * random.standard_normal(len(times))
    return _formants(pulses * np.sin(np.pi * times / times[-1]), (500, 1100, 2400))

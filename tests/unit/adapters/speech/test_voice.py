import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing

import numpy as np
import pytest

from fleet.adapters.speech.opus import Decoder, OpusError
from fleet.adapters.speech.voice import LONGEST_KEPT, PhraseCache, Voice
from fleet.core.ports import USUAL_VOICE, VoiceOptions
from fleet.ground.errors import ProviderError
from fleet.wire.messages import AudioFormat

WIFI = AudioFormat(24_000, 60)


def tone(rate: int, ms: int, hz: float = 440.0) -> bytes:
    time = np.arange(rate * ms // 1000) / rate
    return (np.sin(2 * np.pi * hz * time) * 16000).astype("<i2").tobytes()


def samples(pcm: bytes) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.frombuffer(pcm, "<i2").astype(np.float64)


def peak_hz(pcm: bytes, rate: int) -> float:
    wave = samples(pcm)
    return float(np.argmax(np.abs(np.fft.rfft(wave * np.hanning(len(wave))))) * rate / len(wave))


class ScriptedTts:
    """Yields given pieces; `gate` holds it before the last one."""

    def __init__(self, pieces: list[bytes], sample_rate: int = 24_000) -> None:
        self.pieces = pieces
        self.sample_rate = sample_rate
        self.asked: list[tuple[str, str]] = []
        self.begun = asyncio.Event()
        self.closed = 0
        self.gate: asyncio.Event | None = None
        self.error: ProviderError | None = None

    async def speak(self, text: str, language: str, voice: VoiceOptions = USUAL_VOICE) -> AsyncGenerator[bytes, None]:
        self.asked.append((text, language))
        self.begun.set()
        try:
            for index, piece in enumerate(self.pieces):
                if self.gate and index == len(self.pieces) - 1:
                    await self.gate.wait()
                yield piece
            if self.error:
                raise self.error
        finally:
            self.closed += 1


@pytest.fixture
def tts() -> ScriptedTts:
    return ScriptedTts([tone(24_000, 300)])


@pytest.fixture
def voice(tts: ScriptedTts) -> Iterator[Voice]:
    made = Voice(tts)
    yield made
    made.close()


async def listen(voice: Voice, text: str = "hi", language: str = "en", downlink: AudioFormat = WIFI) -> list[bytes]:
    async with asyncio.timeout(240):
        return [packet async for packets in voice.packets(text, language, downlink) for packet in packets]


def play(packets: list[bytes], downlink: AudioFormat = WIFI) -> bytes:
    decoder = Decoder(downlink.sample_rate)
    return b"".join(decoder.decode(packet) for packet in packets)


@pytest.mark.parametrize("downlink", [WIFI, AudioFormat(16_000, 20), AudioFormat(48_000, 120), AudioFormat(8_000, 5)])
@pytest.mark.parametrize("rate", [24_000, 22_050])
async def test_a_sentence_comes_whole_and_at_its_pitch(downlink: AudioFormat, rate: int) -> None:
    voice = Voice(ScriptedTts([tone(rate, 1000)], rate))
    heard = play(await listen(voice, downlink=downlink), downlink)
    seconds = len(heard) / 2 / downlink.sample_rate
    assert 1.006 <= seconds < 1.007 + downlink.frame_ms / 1000
    assert peak_hz(heard[: downlink.sample_rate * 2], downlink.sample_rate) == pytest.approx(440, abs=5)
    voice.close()


async def test_the_last_of_the_voice_is_not_cut_off() -> None:
    whole_frames = bytes(2880 * 4 - 480) + tone(24_000, 10, 1000)
    voice = Voice(ScriptedTts([whole_frames]))
    heard = samples(play(await listen(voice)))
    assert np.abs(heard[-1440:]).max() > 4000
    assert len(heard) == 5 * 1440
    voice.close()


async def test_sentences_of_a_soft_and_a_loud_voice_are_equally_loud() -> None:
    levels = []
    for amplitude in (0.1, 0.5):
        voice = Voice(ScriptedTts([(samples(tone(24_000, 1000)) * amplitude).astype("<i2").tobytes()]))
        levels.append(float(np.sqrt(np.mean(samples(play(await listen(voice))).astype(float)[4800:19_200] ** 2))))
        voice.close()
    assert levels[0] == pytest.approx(levels[1], rel=0.05)


async def test_pieces_may_be_cut_anywhere() -> None:
    pcm = tone(24_000, 500)
    one, many = Voice(ScriptedTts([pcm])), Voice(ScriptedTts([pcm[at : at + 333] for at in range(0, len(pcm), 333)]))
    # The level of a voice is known after its first sentence; until then it depends on what has come.
    for voice in (many, one):
        await listen(voice, "first")
    cut, whole = [samples(play(await listen(voice))).astype(float) for voice in (many, one)]
    assert len(cut) == len(whole)
    assert np.corrcoef(cut, whole)[0, 1] > 0.999
    one.close()
    many.close()


async def test_packets_come_while_the_voice_still_speaks(voice: Voice, tts: ScriptedTts) -> None:
    tts.pieces = [tone(24_000, 130), tone(24_000, 50)]
    tts.gate = asyncio.Event()
    async with asyncio.timeout(240):
        pieces = voice.packets("hi", "en", WIFI)
        early = list(await anext(pieces))
        assert len(early) == 2
        tts.gate.set()
        assert len(play(early + [packet async for packets in pieces for packet in packets])) == 4 * 2880


async def test_only_whole_packets_are_handed_to_a_thread(
    voice: Voice, tts: ScriptedTts, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed, run = list[float](), voice._engine.run
    monkeypatch.setattr(voice._engine, "run", lambda work, limit: (handed.append(limit), run(work, limit))[1])
    tts.pieces = [tone(24_000, 130)]
    assert len(await listen(voice)) == 3
    assert len(handed) == 1


async def test_silence_gives_packets_and_no_audio_gives_none(tts: ScriptedTts, voice: Voice) -> None:
    tts.pieces = []
    assert await listen(voice) == []
    tts.pieces = [bytes(2880)]
    assert len(await listen(voice)) == 2


async def test_a_phrase_is_kept_for_its_language_and_format(tts: ScriptedTts, voice: Voice) -> None:
    first = await listen(voice)
    assert await listen(voice) == first
    assert tts.asked == [("hi", "en")]
    await listen(voice, language="zh")
    await listen(voice, downlink=AudioFormat(16_000, 60))
    await listen(voice, text="ho")
    assert len(tts.asked) == 4


async def test_a_long_sentence_is_not_kept(tts: ScriptedTts, voice: Voice) -> None:
    for _ in range(2):
        await listen(voice, "x" * (LONGEST_KEPT + 1))
    assert len(tts.asked) == 2


async def test_what_broke_off_is_not_kept(tts: ScriptedTts, voice: Voice) -> None:
    tts.error = ProviderError("TTS broke", retryable=True)
    with pytest.raises(ProviderError, match="TTS broke"):
        await listen(voice)
    tts.error = None
    assert len(await listen(voice)) == 6
    assert len(tts.asked) == 2


async def test_closing_early_closes_the_voice_beneath_and_keeps_nothing(tts: ScriptedTts, voice: Voice) -> None:
    tts.gate = asyncio.Event()
    tts.pieces *= 2
    async with asyncio.timeout(240), aclosing(voice.packets("hi", "en", WIFI)) as packets:
        await anext(packets)
    assert tts.closed == 1
    tts.gate.set()
    await listen(voice)
    assert len(tts.asked) == 2


async def test_cancelling_closes_the_voice_beneath(tts: ScriptedTts, voice: Voice) -> None:
    tts.gate = asyncio.Event()
    listening = asyncio.create_task(listen(voice))
    async with asyncio.timeout(240):
        await tts.begun.wait()
    listening.cancel()
    await asyncio.wait({listening})
    assert listening.cancelled()
    assert tts.closed == 1


async def test_a_voice_that_cannot_be_closed_will_do() -> None:
    class Bare:
        sample_rate = 24_000

        def speak(self, text: str, language: str, voice: VoiceOptions = USUAL_VOICE) -> AsyncIterator[bytes]:
            return self

        def __aiter__(self) -> "Bare":
            return self

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

    voice = Voice(Bare())
    assert await listen(voice) == []
    voice.close()


async def test_an_unknown_downlink_is_an_error(voice: Voice) -> None:
    with pytest.raises(OpusError, match="44100"):
        await listen(voice, downlink=AudioFormat(44_100, 60))


async def test_many_sentences_at_once_do_not_mix() -> None:
    voice = Voice(ScriptedTts([tone(24_000, 700)] * 3))
    alone = await listen(voice)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(listen(voice, f"text {number}"), name="speak") for number in range(20)]
    assert all(task.result() == alone for task in tasks)
    voice.close()


def test_the_least_lately_used_phrase_goes_first() -> None:
    cache = PhraseCache(100)
    one, two, three = (("a", "", WIFI), ("b", "", WIFI), ("c", "", WIFI))
    cache.put(one, [bytes(40)])
    cache.put(two, [bytes(20), bytes(20)])
    assert cache.get(one)
    cache.put(three, [bytes(30)])
    assert (bool(cache.get(one)), bool(cache.get(two)), bool(cache.get(three))) == (True, False, True)


def test_a_phrase_beyond_the_limit_is_not_kept_and_drives_none_out() -> None:
    cache = PhraseCache(100)
    cache.put(("a", "", WIFI), [bytes(40)])
    cache.put(("b", "", WIFI), [bytes(101)])
    cache.put(("c", "", WIFI), [])
    assert cache.get(("a", "", WIFI)) == (bytes(40),)
    assert cache.get(("b", "", WIFI)) == cache.get(("c", "", WIFI)) == ()


def test_a_phrase_kept_twice_counts_once() -> None:
    cache = PhraseCache(100)
    for _ in range(5):
        cache.put(("a", "", WIFI), [bytes(60)])
    cache.put(("b", "", WIFI), [bytes(40)])
    assert cache.get(("a", "", WIFI))
    assert cache.get(("b", "", WIFI))


async def test_the_bitrate_is_what_the_setting_says() -> None:
    sizes = []
    for bitrate in ("24k", "32k"):
        voice = Voice(
            ScriptedTts([np.random.default_rng(1).integers(-9000, 9000, 48_000).astype("<i2").tobytes()]),
            bitrate=bitrate,
        )
        sizes.append(sum(map(len, await listen(voice))))
        voice.close()
    assert sizes == pytest.approx([24_000 * 2 / 8, 32_000 * 2 / 8], rel=0.15)

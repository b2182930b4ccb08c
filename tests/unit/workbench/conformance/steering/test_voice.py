import random
import wave
from importlib.resources import files

import numpy as np
import pytest

from fleet.adapters.speech.opus import Decoder, Encoder
from fleet.adapters.speech.vad_silero import WINDOW, VadState
from fleet.core.endpointing import STAY
from fleet.workbench.conformance.steering.voice import MARKS, Marked, dominant, hum, read, say
from tests.support.offline_speech import silero
from tests.support.recordings import recordings

AUTO = -1000


def through_opus(
    pcm: bytes, frame_ms: int, *, rate: int = 16_000, bitrate: int = AUTO, complexity: int = 0, loss: str = ""
) -> bytes:
    """Encode as devices do and decode at 16 kHz; `loss` says what becomes of every twentieth packet."""
    chance = random.Random(len(pcm) + frame_ms)
    encoder, decoder = Encoder(rate, frame_ms, bitrate, complexity), Decoder(16_000)
    size = encoder.frame_bytes
    heard = b""
    for start in range(0, len(pcm) - size + 1, size):
        packet = encoder.encode(pcm[start : start + size])
        if loss and chance.random() < 0.05:
            heard += decoder.conceal(frame_ms) if loss == "concealed" else b""
        else:
            heard += decoder.decode(packet)
    return heard


def marks(pcm: bytes, rate: int = 16_000) -> list[int]:
    return [one.mark for one in read(pcm, rate)]


@pytest.mark.parametrize("frame_ms", [60, 20])
@pytest.mark.parametrize("loss", ["", "concealed", "skipped"])
@pytest.mark.parametrize("each", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_every_mark_survives_the_devices_codec(frame_ms: int, loss: str, each: int) -> None:
    misread = {
        mark: found
        for mark in MARKS[::each]
        if (found := marks(through_opus(say(mark, 1.0, offset=mark * 0.37), frame_ms, loss=loss))) != [mark]
    }
    assert misread == {}
    assert len(MARKS) >= 250


@pytest.mark.parametrize(("lead", "first"), [(2, 0), (9, 7), (10, 14)])
@pytest.mark.parametrize("each", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_a_mark_loses_little_at_its_edges_whatever_was_encoded_before_it(lead: int, first: int, each: int) -> None:
    silence = bytes(lead * 60 * 32)
    heard = {mark: read(through_opus(silence + say(mark, 1.2), 60)) for mark in MARKS[first::each]}
    assert min(sum(one.end - one.begin for one in found) for found in heard.values()) >= 1.09


@pytest.mark.parametrize("bitrate", [16_000, 24_000])
def test_marks_survive_the_way_down_at_24_khz(bitrate: int) -> None:
    for mark in MARKS[::9]:
        spoken = say(mark, 1.2, rate=24_000)
        assert marks(spoken, 24_000) == [mark]
        assert marks(through_opus(spoken, 60, rate=24_000, bitrate=bitrate, complexity=5)) == [mark]


@pytest.mark.parametrize("frame_ms", [60, 20])
def test_four_packets_of_the_microphone_are_enough_to_read_a_mark(frame_ms: int) -> None:
    for mark in MARKS[::7]:
        assert marks(through_opus(say(mark, 0.24), frame_ms)) == [mark]


def test_it_is_told_when_a_mark_sounds() -> None:
    silence = bytes(16_000 * 2)
    found = read(through_opus(silence + say(222, 2.0) + silence, 60))
    assert [one.mark for one in found] == [222]
    assert found[0].begin == pytest.approx(1.0, abs=0.15)
    assert found[0].end == pytest.approx(3.0, abs=0.15)


def test_two_marks_in_one_audio_are_told_in_their_order() -> None:
    apart = through_opus(say(150, 1.0) + bytes(9_600) + say(301, 1.5), 60)
    assert marks(apart) == [150, 301]
    joined = through_opus(say(301, 0.6) + say(302, 1.5), 60)
    assert marks(joined) == [301, 302]
    assert list(dominant(read(joined))) == [302, 301]


def test_a_short_slip_in_one_tone_is_no_mark_of_its_own() -> None:
    assert marks(say(150, 1.0) + say(168, 0.25) + say(150, 1.0)) == [150]
    assert marks(say(150, 1.0) + say(169, 0.3) + say(150, 1.0)) == [150, 169, 150]


def test_a_mark_that_comes_again_after_a_pause_is_told_twice() -> None:
    assert marks(say(201, 1.0) + bytes(32_000) + say(201, 1.0)) == [201, 201]


def test_dominant_marks_come_with_their_seconds_in_all() -> None:
    heard = [Marked(101, 0.0, 1.0), Marked(102, 1.0, 2.5), Marked(101, 3.0, 4.0)]
    assert list(dominant(heard).items()) == [(101, 2.0), (102, 1.5)]


def test_no_mark_is_read_in_speech() -> None:
    for language in ("en", "zh"):
        for recording in recordings(language):
            pcm = recording.pcm()
            assert [marks(pcm), marks(through_opus(pcm, 60)), marks(through_opus(pcm, 20))] == [[], [], []]


@pytest.mark.parametrize("loudness", [1, 30, 1_000, 8_000])
def test_no_mark_is_read_in_noise(loudness: int) -> None:
    noise = np.random.default_rng(loudness).normal(0, loudness, 16_000 * 20).clip(-32_768, 32_767).astype("<i2")
    assert marks(noise.tobytes()) == []
    assert marks(through_opus(noise.tobytes(), 60)) == []


@pytest.mark.parametrize("pcm", [b"", b"\0", bytes(3), bytes(3_839), bytes(64_000), hum(3.0)])
def test_no_mark_is_read_where_there_is_none(pcm: bytes) -> None:
    assert read(pcm) == []


def test_half_a_sample_at_the_end_does_no_harm() -> None:
    assert marks(say(180, 1.0) + b"\1") == [180]


def test_the_voice_is_as_long_as_asked_at_any_rate() -> None:
    assert len(say(100, 1.5)) == 48_000
    assert len(say(100, 1.5, rate=24_000)) == 72_000
    assert len(hum(0.5, rate=24_000)) == 24_000
    assert say(100, 0) == b""
    assert say(140, 1.0, offset=1.0) != say(140, 1.0)


@pytest.mark.parametrize("mark", [99, 424, 0, -1])
def test_an_unknown_mark_is_refused(mark: int) -> None:
    with pytest.raises(ValueError, match="there is no mark"):
        say(mark, 1.0)


def test_the_recording_is_small_and_its_origin_told() -> None:
    package = files("fleet.workbench.conformance.steering")
    with package.joinpath("voice.wav").open("rb") as file, wave.open(file) as recording:
        assert recording.getparams()[:3] == (1, 2, 16_000)
        assert recording.getnframes() * 2 < 150_000
    assert "Apache License 2.0" in package.joinpath("NOTICE").read_text(encoding="utf-8")


def longest_silence(mark: int, frame_ms: int, loss: str) -> float:
    """Return the longest time in milliseconds, after the first 0.1 s, in which the detector hears no speech."""
    pcm = through_opus(say(mark, 10.0, offset=mark), frame_ms, loss=loss)
    samples = (np.frombuffer(pcm, "<i2") / 32_768).astype(np.float32)
    state, silent, longest = VadState(), 0, 0
    for start in range(3 * WINDOW, len(samples) - WINDOW + 1, WINDOW):
        speech = silero().probabilities([(state, samples[start : start + WINDOW])])[0]
        silent = silent + 1 if speech < STAY else 0
        longest = max(longest, silent)
    return longest * WINDOW / 16


@pytest.mark.speech
@pytest.mark.parametrize("frame_ms", [60, 20])
@pytest.mark.parametrize("loss", ["", "skipped"])
@pytest.mark.parametrize("each", [65, pytest.param(1, marks=pytest.mark.slow)])
def test_the_detector_takes_it_for_speech_throughout(frame_ms: int, loss: str, each: int) -> None:
    # A third of the silence that ends an utterance.
    assert max(longest_silence(mark, frame_ms, loss) for mark in MARKS[::each]) <= 120.0

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.vad_silero import WINDOW, Samples, SileroVad, VadState
from tests.support.listening import Listener, packets, running
from tests.support.offline_speech import silero
from tests.support.recordings import recordings

pytestmark = pytest.mark.speech


@pytest.fixture
def vad() -> SileroVad:
    return silero()


def windows(pcm: bytes) -> list[Samples]:
    samples = np.frombuffer(pcm, "<i2").astype(np.float32) / 32768
    return [samples[start : start + WINDOW] for start in range(0, len(samples) - WINDOW + 1, WINDOW)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_speech_is_found_where_it_is(vad: SileroVad, language: str) -> None:
    for recording in recordings(language):
        state = VadState()
        speech = [vad.probabilities([(state, window)])[0] for window in windows(recording.pcm())]
        loud = [float(np.abs(window).max()) > 0.1 for window in windows(recording.pcm())]
        assert max(speech[:3]) < 0.5, recording.path.name
        assert np.mean([value > 0.5 for value, is_loud in zip(speech, loud, strict=True) if is_loud]) > 0.85


def test_streams_in_a_batch_do_not_disturb_one_another(vad: SileroVad) -> None:
    streams = [windows(recording.pcm())[:40] for recording in recordings("en")]
    alone = []
    for stream in streams:
        state = VadState()
        alone.append([vad.probabilities([(state, window)])[0] for window in stream])
    states = [VadState() for _ in streams]
    together = [vad.probabilities(list(zip(states, row, strict=True))) for row in zip(*streams, strict=True)]
    np.testing.assert_allclose(np.array(together).T, alone, atol=1e-3)


def test_more_streams_than_fit_into_one_run_are_all_judged(vad: SileroVad) -> None:
    window = np.zeros(WINDOW, np.float32)
    speech = vad.probabilities([(VadState(), window) for _ in range(150)])
    assert len(speech) == 150
    assert max(speech) < 0.1


@pytest.mark.parametrize("sound", ["silence", "hiss", "tone"])
def test_what_is_no_speech_is_not_taken_for_it(vad: SileroVad, sound: str) -> None:
    time = np.arange(32_000)
    samples = {
        "silence": np.zeros(len(time)),
        "hiss": np.random.default_rng(1).normal(0, 0.05, len(time)),
        "tone": np.sin(time / 5) * 0.1,
    }[sound].astype(np.float32)
    state = VadState()
    speech = [vad.probabilities([(state, samples[at : at + WINDOW])])[0] for at in range(0, 30_000, WINDOW)]
    assert np.mean(np.array(speech) > 0.5) < 0.05


def test_each_window_is_given_the_end_of_the_one_before() -> None:
    given: list[NDArray[np.float32]] = []

    class Session:
        def run(
            self, outputs: list[str] | None, inputs: dict[str, NDArray[Any]], options: object = None
        ) -> list[NDArray[np.float32]]:
            given.append(inputs["input"])
            return [np.zeros((1, 1), np.float32), inputs["state"]]

    vad, state = SileroVad(Session()), VadState()
    audio = np.arange(2 * WINDOW, dtype=np.float32)
    vad.probabilities([(state, audio[:WINDOW])])
    vad.probabilities([(state, audio[WINDOW:])])
    np.testing.assert_array_equal(given[0][0], np.concatenate((np.zeros(64), audio[:WINDOW])))
    np.testing.assert_array_equal(given[1][0], audio[WINDOW - 64 :])
    state.skip(audio[:40])
    vad.probabilities([(state, audio[40 : WINDOW + 40])])
    np.testing.assert_array_equal(given[2][0][:64], np.concatenate((audio[-24:], audio[:40])))


async def test_ears_hear_speech_in_packets() -> None:
    pcm = recordings("en")[0].pcm()
    async with running(AudioInput(silero())) as ears:
        listener = Listener(ears)
        fed = packets(pcm)
        for packet in fed:
            assert listener.ear.feed(packet)
        frames = await listener.wait(len(fed))
    assert frames[0].speech < 0.5
    assert 0.3 < np.mean([frame.speech > 0.5 for frame in frames]) < 0.9

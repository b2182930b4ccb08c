"""Where long utterances are cut for a recogniser that hears a limited time at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.speech.asr_windows import split

RATE = 16_000


def speech(seconds: float, *pauses: float) -> bytes:
    """Return noise with 0.3 s of silence from each of these times on."""
    samples = np.random.default_rng(1).integers(-8000, 8000, int(seconds * RATE), dtype=np.int16)
    for pause in pauses:
        samples[int(pause * RATE) : int((pause + 0.3) * RATE)] = 0
    return samples.tobytes()


def test_short_utterance_stays_whole() -> None:
    pcm = speech(28)
    assert split(pcm, 18, 28) == [pcm]


def test_long_utterance_is_cut_in_its_pauses() -> None:
    windows = split(speech(60, 20, 40.5), 18, 28)
    ends = np.cumsum([len(window) / 2 / RATE for window in windows])
    assert 20 < ends[0] < 20.3
    assert 40.5 < ends[1] < 40.8
    assert ends[-1] == 60


def test_utterance_without_a_pause_is_cut_all_the_same() -> None:
    windows = split(speech(90), 18, 28)
    assert all(18 <= len(window) / 2 / RATE <= 28 for window in windows[:-1])


@given(st.integers(0, 6 * RATE * 2 + 1), st.integers(0, 2**32 - 1))
def test_windows_together_are_the_whole(size: int, seed: int) -> None:
    pcm = np.random.default_rng(seed).bytes(size)
    windows = split(pcm, 1.0, 2.0)
    assert b"".join(windows) == pcm[: size // 2 * 2]
    assert all(len(window) <= 2.0 * RATE * 2 for window in windows)

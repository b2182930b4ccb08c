import numpy as np
import pytest

from fleet.adapters.speech.echo_canceller import load_canceller
from fleet.workbench.sim.audio.echo_path import EchoPath
from fleet.workbench.sim.profiles.echo_setting import EchoSetting
from tests.support.recordings import recordings

pytestmark = pytest.mark.speech
FRAME = 960


@pytest.fixture(scope="module")
def voice() -> np.ndarray:
    """Return speech of 20 s at -20 dBFS."""
    joined = np.concatenate([np.frombuffer(one.pcm(), "<i2") / 32768 for one in recordings("en")])
    joined = np.resize(joined, 20 * 16_000)
    return joined * 0.1 / np.sqrt(np.mean(joined[np.abs(joined) > 0.01] ** 2))


def s16(samples: np.ndarray) -> bytes:
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def test_a_user_is_noticed_over_the_echo_and_kept_and_the_echo_alone_is_nobody(
    voice: np.ndarray,
) -> None:
    pytest.importorskip("livekit")
    pytest.importorskip("pyaec")
    make = load_canceller()
    canceller, path = make(), EchoPath(EchoSetting(7.0, 90.0))
    user = np.zeros(len(voice))
    user[12 * 16_000 :] = np.roll(voice[::-1], 4000)[12 * 16_000 :] * 0.5
    near, words, present = [], [], []
    for at in range(0, len(voice) // FRAME * FRAME, FRAME):
        echo = path.hear(voice[at : at + FRAME])
        near.append(echo)
        output, somebody = canceller.process(s16(echo + user[at : at + FRAME]), s16(voice[at : at + FRAME]))
        assert len(output) == 2 * FRAME
        words.append(np.frombuffer(output, "<i2") / 32768)
        present.append(np.full(FRAME, somebody))
    alone, both = slice(4 * 16_000, 12 * 16_000), slice(12 * 16_000, 19 * 16_000)
    echo, soft, somebody = (np.concatenate(one) for one in (near, words, present))
    assert np.mean(somebody[alone]) < 0.02, "takes the echo for somebody"
    assert np.mean(somebody[both]) > 0.3, "does not notice the user"
    assert _decibels(echo[alone], soft[alone]) > 15
    assert _decibels(user[both], soft[both]) < 6


def _decibels(before: np.ndarray, after: np.ndarray) -> float:
    return float(10 * np.log10(np.mean(before**2) / np.mean(after**2)))

from collections.abc import Callable

import numpy as np
import pytest

from fleet.adapters.speech.echo_canceller import EchoCanceller
from fleet.adapters.speech.echo_far import FRAME
from fleet.workbench.sim.audio.echo_path import EchoPath
from fleet.workbench.sim.profiles.echo_setting import EchoSetting
from tests.support.recordings import recordings

SECOND = 16_000 // FRAME
SECONDS = 13
Numbers = Callable[[int], int | None]


@pytest.fixture(scope="module")
def voice() -> np.ndarray:
    """Return speech at -20 dBFS, as frames."""
    joined = np.concatenate([np.frombuffer(one.pcm(), "<i2") / 32768 for one in recordings("en")])
    joined = np.resize(joined, SECONDS * SECOND * FRAME)
    return (joined * 0.1 / np.sqrt(np.mean(joined[np.abs(joined) > 0.01] ** 2))).reshape(-1, FRAME)


class Scene:
    """A device that plays a voice, and what the server makes of its microphone."""

    def __init__(
        self, voice: np.ndarray, user: np.ndarray, numbers: Numbers = lambda number: number, *, louder_at: int = 0
    ) -> None:
        canceller, path = EchoCanceller(), EchoPath(EchoSetting(7.0, 90.0))
        near, out, somebody = [], [], []
        for number, played in enumerate(voice, 1):
            for known in range(canceller.newest + 1, min(number + 5, len(voice) + 1)):
                canceller.add(known, voice[known - 1].astype(np.float32))
            gain = 1.5 if louder_at and number >= louder_at else 1.0
            near.append(path.hear(played) * gain)
            reported = numbers(number)
            heard = np.zeros(FRAME) if reported is None else np.clip(near[-1] + user[number - 1], -1, 1)
            pcm, there = canceller.process((heard * 32767).astype("<i2").tobytes(), reported)
            assert len(pcm) == 2 * FRAME
            out.append(np.frombuffer(pcm, "<i2") / 32768)
            somebody.append(there)
        self.near, self.out, self.somebody = np.array(near), np.array(out), np.array(somebody)

    def removed(self, since: int, until: int) -> float:
        """Return by how much the echo was lowered from one second to another, in dB."""
        frames = slice(since * SECOND, until * SECOND)
        return float(10 * np.log10(np.mean(self.near[frames] ** 2) / np.mean(self.out[frames] ** 2)))


def test_a_user_is_noticed_over_the_echo_and_kept_and_the_echo_alone_is_nobody(voice: np.ndarray) -> None:
    user = np.zeros_like(voice)
    begin = 9 * SECOND
    user[begin:] = np.roll(voice[::-1], 3, axis=0)[begin:] * 0.5
    scene = Scene(voice, user)
    assert scene.removed(4, 9) > 10
    assert not scene.somebody[:begin].any(), "takes the echo for somebody"
    assert np.mean(scene.somebody[begin:]) > 0.3, "does not notice the user"
    kept = np.corrcoef(user[begin:-1].ravel(), np.roll(scene.out.ravel(), -320).reshape(user.shape)[begin:-1].ravel())
    assert kept[0, 1] > 0.8


def test_what_changes_without_a_user_is_nobody(voice: np.ndarray) -> None:
    """Numbers that slip, packets that are lost on either way, a turned-up loudspeaker."""
    silence = np.zeros_like(voice)
    begin = 6 * SECOND
    for name, numbers in {
        "late": lambda number: number - (number > begin),
        "early": lambda number: number + (number > begin),
        "two early, after a lost frame": lambda number: None if number == begin else number + 2 * (number > begin),
        "lost on the way": lambda number: None if number % 40 == 0 else number,
    }.items():
        scene = Scene(voice, silence, numbers)
        assert not scene.somebody.any(), name
        assert scene.removed(7, SECONDS) > 10, name
    scene = Scene(voice, silence, louder_at=begin)
    assert not scene.somebody.any() and scene.removed(9, SECONDS) > 10, "louder"


def test_a_slip_that_the_numbers_do_not_show_is_found_by_the_sound(voice: np.ndarray) -> None:
    begin = 6 * SECOND
    jumped = np.concatenate((voice[:begin], voice[begin + 1 :], voice[-1:]))
    # The device leaves out a packet, and the numbers that it reports go on as if it had not.
    canceller, path = EchoCanceller(), EchoPath(EchoSetting(7.0, 90.0))
    near, out, somebody = [], [], []
    for number, played in enumerate(jumped, 1):
        for known in range(canceller.newest + 1, min(number + 6, len(voice) + 1)):
            canceller.add(known, voice[known - 1].astype(np.float32))
        near.append(path.hear(played))
        pcm, there = canceller.process((np.clip(near[-1], -1, 1) * 32767).astype("<i2").tobytes(), number)
        out.append(np.frombuffer(pcm, "<i2") / 32768)
        somebody.append(there)
    after = slice(begin + SECOND, None)
    assert not any(somebody)
    assert 10 * np.log10(np.mean(np.array(near)[after] ** 2) / np.mean(np.array(out)[after] ** 2)) > 10


def test_before_the_room_is_known_nobody_is_heard(voice: np.ndarray) -> None:
    scene = Scene(voice[: 3 * SECOND], np.roll(voice[::-1], 3, axis=0)[: 3 * SECOND])
    assert not scene.somebody[: int(1.7 * SECOND)].any()

from collections.abc import Sequence

import numpy as np

from fleet.adapters.speech.echo_far import FRAME
from fleet.adapters.speech.echo_filter import EchoFilter

DELAY = 1200
"""Samples from the loudspeaker to the microphone: 75 ms."""


class Room:
    """A loudspeaker that plays noise, and a microphone that hears it late."""

    def __init__(self, frames: int) -> None:
        self.filter, self.noise = EchoFilter(), np.random.default_rng(1)
        self.played = self.noise.standard_normal((frames + 3) * FRAME).astype(np.float32) * np.float32(0.1)
        self.heard = np.concatenate((np.zeros(DELAY, np.float32), self.played)) * np.float32(0.8)

    def hear(self, frames: Sequence[int], *, moved: int = 0, gain: float = 1.0, user: float = 0.0) -> list[float]:
        """Return for each frame which share of the echo's energy the filter did not predict."""
        left = []
        for number in frames:
            for known in range(self.filter.far.newest + 1, number + 3):
                self.filter.far.add(known, self.played[(known - 1) * FRAME : known * FRAME])
            self.filter.far.step(number)
            at = (number - 1 + moved) * FRAME
            echo = (self.heard[at : at + FRAME] * gain).astype(np.float32)
            said = (user * self.noise.standard_normal(FRAME)).astype(np.float32)
            rest = echo - self.filter.predict(echo + said)
            left.append(float(rest @ rest) / max(float(echo @ echo), 1e-3))
        return left


def test_an_echo_is_learned_and_stays_learned_while_a_user_speaks() -> None:
    room = Room(90)
    assert room.filter.learning and not room.filter.reliable
    assert max(room.hear(range(1, 61))[40:]) < 0.03
    assert not room.filter.learning and room.filter.reliable
    assert max(room.hear(range(61, 76), user=0.1)) < 0.1
    assert max(room.hear(range(76, 90))) < 0.05


def test_a_slip_is_corrected_within_two_frames_and_a_new_volume_too() -> None:
    for moved in (-2, -1, 1, 2):
        room = Room(70)
        room.hear(range(1, 61))
        assert max(room.hear(range(61, 69), moved=moved)[2:]) < 0.05, moved
    for gain in (0.4, 2.5):
        room = Room(70)
        room.hear(range(1, 61))
        assert max(room.hear(range(61, 69), gain=gain)[4:]) < 0.1, gain


def test_an_echo_that_is_nowhere_is_not_relied_on_and_learned_anew() -> None:
    room = Room(150)
    room.hear(range(1, 61))
    room.heard = np.roll(room.heard, 700)
    room.hear(range(61, 63))
    assert not room.filter.reliable
    room.hear(range(63, 75))
    assert room.filter.learning
    assert max(room.hear(range(75, 140))[45:]) < 0.05
    assert room.filter.reliable

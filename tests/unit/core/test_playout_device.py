"""What a device hears of an answer when packets are lost, against a model of its queue that loses them."""

import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.core.playout import Playout
from fleet.core.playout_device import LEAD, LEAD_OF_INTERRUPTIBLE, MOST_FILLED, SETTLE, Pacing, PacingTerms

FRAME = 0.06
TICK = 0.005
QUEUE = 20
"""Packets that firmware 2.5 holds."""


class Listener:
    """A device that begins to play with its first packet and then needs one each 60 ms."""

    def __init__(self, pacing: Pacing, loss: float, seed: int = 0) -> None:
        self.playout = Playout(60, b"silence", pacing=pacing)
        self._loss, self._chance = loss, random.Random(seed)
        self._sentence = -1
        self.queue: deque[int] = deque()
        self.longest = 0
        self.gaps = 0
        """Frames that were missing between two of the same sentence."""
        self.over: float | None = None
        self.done = 0.0
        self._playing_until = 0.0
        self._played = -1

    def hear(self, lengths: list[int]) -> "Listener":
        """Run an answer of sentences with so many frames, which all are there at once."""
        for number, length in enumerate(lengths):
            self.playout.begin_sentence(number)
            for _ in range(length):
                self.playout.queue.add([b"audio"])
        self.playout.end()
        self.playout.start(0.0)
        tick = 0
        while self.over is None:
            now = tick * TICK
            self._receive(now)
            self._play(now)
            tick += 1
            assert tick < 100_000, "the answer never ends"
        return self

    def _receive(self, now: float) -> None:
        step = self.playout.step(now)
        self._sentence = step.begins[-1] if step.begins else self._sentence
        if step.packet and self._chance.random() >= self._loss:
            self.queue.append(self._sentence)
            self.longest = max(self.longest, len(self.queue))
        if step.stop:
            self.over = now

    def _play(self, now: float) -> None:
        if now < self._playing_until - 1e-9 or not self.queue:
            return
        sentence = self.queue.popleft()
        if sentence == self._played and now - self._playing_until > TICK:
            self.gaps += round((now - self._playing_until) / FRAME + 0.49)
        self._played, self._playing_until, self.done = sentence, now + FRAME, now + FRAME


ANSWER = [50, 60, 43, 70, 70]
"""17.6 seconds."""


def gaps(pacing: Pacing, loss: float) -> float:
    return sum(Listener(pacing, loss, seed).hear(ANSWER).gaps for seed in range(20)) / 20


def test_answer_over_a_lossy_network_has_hardly_a_gap() -> None:
    assert gaps(Pacing(LEAD, loss=0.05), 0.05) < 1
    # As it was, and as it is where nothing is known of the loss.
    assert gaps(Pacing(LEAD_OF_INTERRUPTIBLE), 0.05) > 5


def test_even_a_device_that_is_interrupted_by_voice_has_few_gaps() -> None:
    assert gaps(Pacing(LEAD_OF_INTERRUPTIBLE, loss=0.05), 0.05) < 3


@given(
    lead=st.sampled_from([LEAD_OF_INTERRUPTIBLE, LEAD]),
    believed=st.floats(0, 1),
    real=st.floats(0, 0.9),
    lengths=st.lists(st.integers(1, 150), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
def test_wrong_estimate_never_overflows_the_queue_of_firmware_2_5(
    lead: int, believed: float, real: float, lengths: list[int], seed: int
) -> None:
    heard = Listener(Pacing(lead, believed), real, seed).hear(lengths)
    assert heard.longest <= 2 * lead + 1 <= QUEUE
    assert not heard.queue
    assert heard.over is not None
    assert heard.over >= heard.done - TICK


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_end_waits_for_devices_that_clear_their_queue_on_it(loss: float) -> None:
    usual = Listener(Pacing(loss=loss), loss).hear(ANSWER)
    patient = Listener(Pacing(loss=loss, settle=SETTLE), loss).hear(ANSWER)
    assert usual.over is not None
    assert patient.over == pytest.approx(usual.over + SETTLE, abs=2 * TICK)


def test_known_losses_are_made_up_for_at_once() -> None:
    playout = Playout(60, b"silence", pacing=Pacing(LEAD))
    for _ in range(100):
        playout.queue.add([b"audio"])
    playout.start(0.0)
    now = 0.0
    while now < 2.0:
        playout.step(now)
        now += TICK
    waiting = len(playout.queue)
    playout.add_loss(3)
    for _ in range(round(0.1 / TICK)):
        playout.step(now)
        now += TICK
    assert waiting - len(playout.queue) in (4, 5)


@pytest.mark.parametrize(("frame_ms", "frames"), [(20, 100), (60, 34), (120, 17)])
def test_a_pause_is_filled_with_whole_frames_for_its_time_and_no_frame_more(frame_ms: int, frames: int) -> None:
    assert PacingTerms(frame_ms, Pacing()).most_filled == frames
    assert frames * frame_ms >= MOST_FILLED * 1000 > (frames - 1) * frame_ms

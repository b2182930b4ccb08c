"""What is known of lost packets from the timestamps that a device sends back."""

import random

import pytest

from fleet.core.playback_gauge import PlaybackGauge

FRAME = 0.06


def answer(lost: set[int], delay: float, jitter: float, frames: int = 300) -> int:
    """Return how many frames are found lost of an answer that is sent in real time, with four frames ahead."""
    chance = random.Random(1)
    gauge, found, skipped = PlaybackGauge(60), 0, 0
    for played in range(frames):
        if played in lost:
            skipped += 1
            continue
        # The device plays one frame after the other; what was lost takes no time.
        now = (played - skipped) * FRAME + delay + jitter * chance.random()
        sent = min(frames, int((played - skipped) + found) + 4)
        found += gauge.take(sent - played, (sent - found) * FRAME, now)
    return found


@pytest.mark.parametrize("delay", [0.0, 0.08, 0.4])
@pytest.mark.parametrize("jitter", [0.0, 0.02, 0.1])
def test_nothing_is_lost_where_nothing_was(delay: float, jitter: float) -> None:
    assert answer(set(), delay, jitter) == 0


@pytest.mark.parametrize("delay", [0.0, 0.08, 0.4])
@pytest.mark.parametrize("jitter", [0.0, 0.02])
def test_losses_are_found(delay: float, jitter: float) -> None:
    lost = {40, 41, 90, 120, 200}
    assert answer(lost, delay, jitter) == len(lost)


def test_news_that_cannot_be_is_ignored() -> None:
    gauge = PlaybackGauge(60)
    assert [gauge.take(left, 0.0, 5.0) for left in (-1, 65, 10**9) * 20] == [0] * 60

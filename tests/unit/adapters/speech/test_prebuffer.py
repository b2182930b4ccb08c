from fleet.adapters.speech.prebuffer import PrebufferEstimator


def learned(making: float, playing: float) -> PrebufferEstimator:
    """Return what is known after one piece of ten characters."""
    estimator = PrebufferEstimator()
    estimator.record(10, making, playing)
    return estimator


def test_who_knows_nothing_begins_at_once() -> None:
    assert PrebufferEstimator().can_start(0.5, [10, 20, 30])


def test_quick_voice_begins_with_its_first_piece() -> None:
    assert learned(0.6, 2.0).can_start(1.2, [9, 14, 21])


def test_slow_voice_begins_when_what_is_ready_lasts() -> None:
    # Twice as slow as it plays: 20 characters play for 4 s and take 8 s.
    slow = learned(4.0, 2.0)
    assert not slow.can_start(4.0, [20])
    assert slow.can_start(6.5, [20])
    assert slow.can_start(0.1, [])


def test_piece_in_the_middle_counts_as_much_as_the_last() -> None:
    # The first further piece comes too late, though all together would be in time.
    assert not learned(1.0, 2.0).can_start(0.2, [20, 10])
    assert learned(1.0, 2.0).can_start(0.2, [10, 20])


def test_load_that_is_over_is_forgotten() -> None:
    estimator = learned(20.0, 2.0)
    for _ in range(10):
        estimator.record(10, 0.6, 2.0)
    assert estimator.can_start(2.0, [20])

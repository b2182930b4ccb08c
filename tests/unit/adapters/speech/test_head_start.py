from fleet.adapters.speech.head_start import HeadStart


def learned(making: float, playing: float) -> HeadStart:
    """Return what is known after one piece of ten characters."""
    start = HeadStart()
    start.learn(10, making, playing)
    return start


def test_who_knows_nothing_begins_at_once() -> None:
    assert HeadStart().suffices(0.5, [10, 20, 30])


def test_quick_voice_begins_with_its_first_piece() -> None:
    assert learned(0.6, 2.0).suffices(1.2, [9, 14, 21])


def test_slow_voice_begins_when_what_is_ready_lasts() -> None:
    # Twice as slow as it plays: 20 characters play for 4 s and take 8 s.
    slow = learned(4.0, 2.0)
    assert not slow.suffices(4.0, [20])
    assert slow.suffices(6.5, [20])
    assert slow.suffices(0.1, [])


def test_piece_in_the_middle_counts_as_much_as_the_last() -> None:
    # The first further piece comes too late, though all together would be in time.
    assert not learned(1.0, 2.0).suffices(0.2, [20, 10])
    assert learned(1.0, 2.0).suffices(0.2, [10, 20])


def test_load_that_is_over_is_forgotten() -> None:
    start = learned(20.0, 2.0)
    for _ in range(10):
        start.learn(10, 0.6, 2.0)
    assert start.suffices(2.0, [20])

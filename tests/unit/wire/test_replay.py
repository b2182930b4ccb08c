from hypothesis import given
from hypothesis import strategies as st

from fleet.wire.replay import LARGEST_JUMP, WIDTH, ReplayWindow


def admit(window: ReplayWindow, sequence: int) -> str:
    verdict = window.check(sequence)
    if verdict in ("new", "late"):
        window.record(sequence)
    return verdict


def test_each_number_is_admitted_once() -> None:
    window = ReplayWindow()
    assert [admit(window, n) for n in (1, 2, 4, 3, 3, 2)] == ["new", "new", "new", "late", "duplicate", "duplicate"]


def test_numbers_behind_the_window_are_old() -> None:
    window = ReplayWindow()
    admit(window, 200)
    assert window.check(200 - WIDTH) == "old"
    assert window.check(200 - WIDTH + 1) == "late"
    assert window.check(0) == "old"


def test_a_forged_jump_does_not_mute_the_stream() -> None:
    window = ReplayWindow()
    admit(window, 1)
    assert window.check(0xFFFFFFFF) == "jump"
    assert window.check(1 + LARGEST_JUMP + 1) == "jump"
    assert admit(window, 2) == "new"
    assert admit(window, 2 + LARGEST_JUMP) == "new"


@given(st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 200), max_size=200))
def test_no_number_passes_twice(sequences: list[int]) -> None:
    window, passed = ReplayWindow(), set[int]()
    for sequence in sequences:
        if admit(window, sequence) in ("new", "late"):
            assert sequence not in passed
            passed.add(sequence)

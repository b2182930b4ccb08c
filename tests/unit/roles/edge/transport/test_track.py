"""Which numbers one packet may take. What attackers make of it: tests/security/test_audio_sweeps.py."""

from fleet.roles.edge.transport.sequential_test import live_test
from fleet.roles.edge.transport.track import (
    EARLY,
    HELD_UP,
    LIVE_SECONDS,
    NEAR,
    QUIET_SECONDS,
    REFUTED_QUIET_SECONDS,
    Track,
)

FRAME = 0.06


def begun(newest: int = 10) -> Track:
    """Return the track of a device that was proved with this number at time 0."""
    track = Track(60, live_test(60, pinned=True))
    track.begin(newest, newest, 0.0)
    return track


def test_packets_in_time_are_taken_also_after_lost_ones() -> None:
    track = begun()
    assert all(track.take(10 + count, count * FRAME) for count in (1, 2, 4, 7))
    assert track.newest == track.reached == 17


def test_no_number_is_taken_long_before_its_time() -> None:
    track = begun()
    taken = [track.take(10 + count, 0.001) for count in range(1, 100)]
    assert taken == [True] * int(HELD_UP) + [False] * (99 - int(HELD_UP))


def test_leaps_do_not_get_ahead_of_the_time() -> None:
    track, number = begun(), 10
    for tick in range(1000):
        number += NEAR * track.take(number + NEAR, tick * 0.001)
    assert number <= 10 + EARLY + 1.2 / FRAME


def test_what_was_held_up_for_half_a_second_is_taken_at_once() -> None:
    track = begun()
    assert all(track.take(number, 0.5) for number in range(11, 51))


def test_a_stream_in_which_nothing_comes_needs_a_proof() -> None:
    assert not begun().take(11, LIVE_SECONDS + 0.01)


def test_a_stream_of_guesses_needs_a_proof_and_has_not_come_further() -> None:
    track, number, now = begun(), 10, 0.0
    while track.is_live(now):
        now += 0.05
        for _ in range(255):
            track.spoil()
        number += track.take(number + 1, now)
    assert track.reached == track.floor(now) == 10
    assert number < 15


def test_a_device_goes_on_and_its_numbers_count_though_somebody_guesses() -> None:
    track = begun()
    for count in range(1, 200):
        assert track.take(10 + count, count * FRAME)
        for _ in range(30):
            track.spoil()
    assert track.newest - track.reached < 30


def test_behind_guesses_the_packets_of_a_device_are_not_late() -> None:
    track = begun()
    for number in range(11, 21):
        track.spoil()
        assert track.take(number, 0.001)
    assert not track.take(11, 0.01), "it needs a proof, and is not dropped"


def test_packets_behind_a_few_leaps_are_taken() -> None:
    """As many as a leap may come early: a proof would take longer than the device needs to catch up."""
    track = begun()
    track.spoil()
    assert [track.take(number, 0.001) for number in (13, 16, 18)] == [True] * 3
    assert all(track.take(10 + count, count * FRAME) for count in (1, 2, 4, 5, 7))


def test_silence_waits_for_the_proof_of_a_refuted_stream() -> None:
    track = begun()
    for _ in range(400):
        track.spoil()
    assert not track.is_live(0.0)
    assert [track.pause(now, FRAME) for now in (QUIET_SECONDS, 1.9, REFUTED_QUIET_SECONDS)] == [False, False, True]
    track.begin(14, 4, 2.1)
    assert [track.pause(2.1 + after, FRAME) for after in (0.2, QUIET_SECONDS + 0.01)] == [False, True]

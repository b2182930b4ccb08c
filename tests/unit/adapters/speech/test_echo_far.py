import numpy as np

from fleet.adapters.speech.echo_far import BLOCKS, FRAME, FarSound


def far(*numbers: int | None, sounds: int = 40) -> FarSound:
    """Return the sound of a device that reported these numbers; the sound of packet n is n everywhere."""
    made = FarSound()
    for number in range(1, 1 + sounds):
        made.add(number, np.full(FRAME, number, np.float32))
    for number in numbers:
        made.step(number)
    return made


def played(made: FarSound, frames: int = 0) -> list[int]:
    """Return what was played, the newest first: the packet after the last one, and those before."""
    sounds = np.fft.irfft(made.spectra(frames))
    return [round(float(block[FRAME])) for block in sounds]


def test_what_was_played_is_known_with_the_packet_that_follows() -> None:
    assert played(far(18, 19, 20, 21, 22)) == [23, 22, 21, 20, 19, 18]
    assert played(far(18, 19, 20, 21, 22), 2) == [25, 24, 23, 22, 21, 20]


def test_a_small_jump_of_the_numbers_is_taken_for_a_slip() -> None:
    for jump in (-3, -1, 1, 3):
        assert played(far(20, 21, 22, 23 + jump, 24 + jump)) == [25, 24, 23, 22, 21, 20], jump


def test_a_large_jump_is_right() -> None:
    assert played(far(17, 18, 30, 31))[:4] == [32, 31, 30, 18]


def test_a_correction_lasts_and_is_corrected() -> None:
    made = far(18, 19, 20)
    made.shift(1)
    made.step(21)
    assert played(made)[:4] == [23, 22, 21, 20]
    made.shift(-1)
    made.step(22)
    assert played(made)[:4] == [23, 22, 21, 20]


def test_nothing_is_silence_and_a_lost_frame_was_what_follows() -> None:
    made = far(18, 19, None, 21, 0, 23)
    assert played(made) == [24, 23, 0, 21, 20, 19]
    for _ in range(BLOCKS):
        assert not made.silent
        made.step(0)
    assert made.silent and played(made) == [0] * BLOCKS
    made.step(None)
    assert made.silent


def test_only_the_last_sounds_are_kept_and_unknown_ones_are_silence() -> None:
    made = far(38, 39, 40)
    assert made.newest == 40
    assert played(made)[:3] == [0, 40, 39]
    assert played(far(1, 2, 3))[:3] == [0, 0, 0]

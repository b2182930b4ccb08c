import gc
from dataclasses import replace

import numpy as np

from fleet.adapters.speech.echo_canceller import EchoCanceller
from fleet.adapters.speech.echo_far import Samples
from fleet.adapters.speech.echo_stream import PLAYING_SECONDS, EchoPool, EchoStream
from fleet.adapters.speech.opus import Encoder
from fleet.core.reference import NOTHING, Played
from tests.support.listening import tone

NEAR = tone(0.06, 300)
PACKET = Encoder(24_000, 60).encode(tone(0.09))
PLAYED = Played(3, ((2, PACKET), (3, PACKET), (4, PACKET)))


class Canceller(EchoCanceller):
    """Notes what it is given; its output is distinct from its input."""

    def __init__(self) -> None:
        super().__init__()
        self.sounds: dict[int, Samples] = {}
        self.numbers: list[int | None] = []

    def add(self, number: int, sound: Samples) -> None:
        super().add(number, sound)
        self.sounds[number] = sound

    def process(self, near: bytes, number: int | None) -> tuple[bytes, bool]:
        self.numbers.append(number)
        return b"w" * len(near), True


def test_audio_passes_unchanged_until_the_device_plays_something() -> None:
    made: list[Canceller] = []
    stream = EchoStream(EchoPool(lambda: made.append(Canceller()) or made[-1]))
    assert stream.process(NEAR, NOTHING) == stream.process(NEAR, None) == (NEAR, True)
    assert not made
    assert stream.process(NEAR, PLAYED) == (b"w" * 1920, True)
    assert list(made[0].sounds) == [2, 3, 4]
    assert all(len(sound) == 960 and 0.01 < np.max(np.abs(sound)) <= 1 for sound in made[0].sounds.values())


def test_each_packet_is_decoded_once() -> None:
    canceller = Canceller()
    stream = EchoStream(EchoPool(lambda: canceller))
    stream.process(NEAR, PLAYED)
    canceller.sounds.clear()
    stream.process(NEAR, Played(4, ((3, PACKET), (4, PACKET), (5, PACKET))))
    assert list(canceller.sounds) == [5]


def test_the_echo_is_removed_for_half_a_second_after_the_last_packet_and_not_longer() -> None:
    canceller = Canceller()
    stream = EchoStream(EchoPool(lambda: canceller))
    stream.process(NEAR, PLAYED)
    after = [stream.process(NEAR, None if number == 3 else NOTHING)[0] != NEAR for number in range(12)]
    assert after == [True] * 7 + [False] * 5
    assert canceller.numbers == [3, 0, 0, 0, None, 0, 0, 0]


def test_a_stream_without_a_canceller_is_silent_while_the_device_plays() -> None:
    pool = EchoPool(Canceller, most=1)
    first, second = EchoStream(pool), EchoStream(pool)
    assert first.process(NEAR, PLAYED)[0] == b"w" * 1920
    assert second.process(NEAR, PLAYED) == (bytes(1920), False)
    del first
    gc.collect()
    assert second.process(NEAR, PLAYED)[0] == b"w" * 1920


def test_a_stream_takes_the_place_of_the_one_that_has_not_played_for_the_longest_time() -> None:
    pool = EchoPool(Canceller, most=2)
    first, second, third = (EchoStream(pool) for _ in range(3))
    assert [heard(first, 1.0), heard(second, 2.5)] == [True, True]
    assert not heard(third, 1.0 + PLAYING_SECONDS - 0.1)
    assert heard(third, 1.0 + PLAYING_SECONDS)
    assert heard(second, 4.0)
    assert not heard(first, 4.1)
    assert first.process(NEAR, NOTHING) == (bytes(1920), False), "half duplex, as without a place"


def test_a_stream_that_plays_never_loses_its_place() -> None:
    pool = EchoPool(Canceller, most=1)
    playing, other = EchoStream(pool), EchoStream(pool)
    for number in range(100):
        assert heard(playing, 0.06 * number)
        assert not heard(other, 0.06 * number)


def heard(stream: EchoStream, now: float) -> bool:
    """Return whether a stream whose device plays something now is heard."""
    return stream.process(NEAR, replace(PLAYED, at=now))[1]


def test_a_damaged_packet_is_silence_and_a_frame_of_another_length_cannot_be_aligned() -> None:
    canceller = Canceller()
    stream = EchoStream(EchoPool(lambda: canceller))
    stream.process(NEAR, Played(1, ((1, b"\xff\xff\xff\xff"),)))
    assert not canceller.sounds[1].any() and len(canceller.sounds[1]) == 960
    assert stream.process(NEAR[:640], PLAYED) == (bytes(640), False)

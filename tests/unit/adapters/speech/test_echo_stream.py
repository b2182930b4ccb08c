import gc

from fleet.adapters.speech.echo_stream import EchoPool, EchoStream
from fleet.adapters.speech.opus import Encoder
from tests.support.listening import tone

NEAR = tone(0.06, 300)
PLAYED = Encoder(24_000, 60).encode(tone(0.09))


class Canceller:
    """Notes what it is given; its output is distinct from its input."""

    def __init__(self) -> None:
        self.far: list[bytes] = []

    def process(self, near: bytes, far: bytes) -> tuple[bytes, bool]:
        self.far.append(far)
        return b"w" * len(near), True


def test_audio_passes_unchanged_until_the_device_plays_something() -> None:
    made: list[Canceller] = []
    stream = EchoStream(EchoPool(lambda: made.append(Canceller()) or made[-1]))
    assert stream.process(NEAR, b"") == (NEAR, True)
    assert not made
    assert stream.process(NEAR, PLAYED) == (b"w" * 1920, True)
    assert len(made[0].far[0]) == 1920 and any(made[0].far[0])


def test_the_echo_is_removed_for_half_a_second_after_the_last_packet_and_not_longer() -> None:
    canceller = Canceller()
    stream = EchoStream(EchoPool(lambda: canceller))
    stream.process(NEAR, PLAYED)
    after = [stream.process(NEAR, b"")[0] != NEAR for _ in range(12)]
    assert after == [True] * 7 + [False] * 5
    assert canceller.far[-1] == bytes(1920)


def test_a_stream_without_a_canceller_is_silent_while_the_device_plays() -> None:
    pool = EchoPool(Canceller, most=1)
    first, second = EchoStream(pool), EchoStream(pool)
    assert first.process(NEAR, PLAYED)[0] == b"w" * 1920
    assert second.process(NEAR, PLAYED) == (bytes(1920), False)
    del first
    gc.collect()
    assert second.process(NEAR, PLAYED)[0] == b"w" * 1920


def test_a_damaged_packet_is_silence_and_one_of_another_length_cannot_be_aligned() -> None:
    canceller = Canceller()
    stream = EchoStream(EchoPool(lambda: canceller))
    stream.process(NEAR, b"\xff\xff\xff\xff")
    assert canceller.far == [bytes(1920)]
    assert stream.process(NEAR[:640], PLAYED) == (bytes(640), False)

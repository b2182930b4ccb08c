import pytest

from fleet.adapters.speech.opus import Encoder
from fleet.workbench.sim.audio.toc import duration_ms, is_stereo


@pytest.mark.parametrize("rate", [16_000, 24_000, 48_000])
@pytest.mark.parametrize("frame_ms", [10, 20, 40, 60, 120])
def test_durations_are_those_that_libopus_encoded(rate: int, frame_ms: int) -> None:
    encoder = Encoder(rate, frame_ms)
    packet = encoder.encode(bytes(encoder.frame_bytes))
    assert duration_ms(packet) == frame_ms
    assert not is_stereo(packet)


def test_the_silence_byte_of_the_device_lasts_60_ms() -> None:
    assert duration_ms(b"\x58") == 60


def test_what_cannot_be_opus_lasts_nothing() -> None:
    assert duration_ms(b"") == 0
    assert duration_ms(b"\xff") == 0


def test_stereo_is_told_from_mono() -> None:
    assert is_stereo(b"\x5c")

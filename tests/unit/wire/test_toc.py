from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.adapters.speech.opus import FRAME_MS, SAMPLE_RATES, Decoder, Encoder, OpusError
from fleet.wire.toc import duration_ms, empty_packet
from tests.support.every import for_every


@for_every("frame_ms, rate, bitrate", list(product(FRAME_MS, SAMPLE_RATES, [6_000, 24_000, 64_000])))
def test_duration_is_that_of_encoded_packets(rate: int, frame_ms: int, bitrate: int) -> None:
    encoder = Encoder(rate, frame_ms, bitrate=bitrate, complexity=0)
    noise = bytes((number * 7919) % 251 for number in range(encoder.frame_bytes))
    assert {duration_ms(encoder.encode(pcm)) for pcm in (noise, bytes(encoder.frame_bytes))} == {frame_ms}


@pytest.mark.parametrize("frame_ms", FRAME_MS)
def test_empty_packet_lasts_as_long_for_a_decoder(frame_ms: int) -> None:
    packet = empty_packet(frame_ms)
    assert duration_ms(packet) == frame_ms
    assert len(Decoder(16_000).decode(packet)) == 16 * 2 * frame_ms


def test_stock_uplink_packet_lasts_sixty_milliseconds() -> None:
    assert duration_ms(b"\x58" + b"\xaa" * 19) == 60


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x59\x00", id="two equal frames in an odd number of bytes"),
        pytest.param(b"\x5a", id="no length of the first of two frames"),
        pytest.param(b"\x5a\x05\x00", id="first of two frames longer than the packet"),
        pytest.param(b"\x5a\xff", id="half a length"),
        pytest.param(b"\x5b", id="no count"),
        pytest.param(b"\x5b\x00", id="no frames"),
        pytest.param(b"\x5b\x03", id="more than 120 ms"),
        pytest.param(b"\x58" + bytes(1276), id="frame longer than Opus has"),
    ],
)
def test_impossible_packet_has_no_duration(packet: bytes) -> None:
    assert duration_ms(packet) is None


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_whatever_a_decoder_takes_has_the_duration_that_it_gives(packet: bytes) -> None:
    try:
        pcm = Decoder(48_000).decode(packet)
    except OpusError:
        return
    assert duration_ms(packet) == len(pcm) / 2 / 48

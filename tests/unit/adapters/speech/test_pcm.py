import io
import itertools
import struct
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.speech.pcm import (
    Resampler,
    WavError,
    duration,
    read_header,
    read_wav,
    resample,
    size_of,
    write_wav,
)


def tone(rate: int, ms: int, hz: float = 440.0) -> bytes:
    time = np.arange(rate * ms // 1000) / rate
    return (np.sin(2 * np.pi * hz * time) * 16000).astype("<i2").tobytes()


def peak_hz(pcm: bytes, rate: int) -> float:
    samples = np.frombuffer(pcm, "<i2").astype(float)
    return float(np.argmax(np.abs(np.fft.rfft(samples * np.hanning(len(samples))))) * rate / len(samples))


def assert_alike(one: bytes, other: bytes) -> None:
    """Compare up to the resampler's dither."""
    assert len(one) == len(other)
    difference = np.frombuffer(one, "<i2").astype(int) - np.frombuffer(other, "<i2")
    assert np.abs(difference).max(initial=0) <= 3


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def riff(*chunks: bytes) -> bytes:
    return b"RIFF\0\0\0\0WAVE" + b"".join(chunks)


def layout(kind: int = 1, channels: int = 1, rate: int = 24_000, bits: int = 16) -> bytes:
    return chunk(b"fmt ", struct.pack("<HHIIHH", kind, channels, rate, rate * 2, 2, bits))


def test_lengths_and_times_agree() -> None:
    assert size_of(60, 24_000) == 2880
    assert size_of(6.5, 16_000) == 208
    assert duration(bytes(2880), 24_000) == 0.06


def test_a_written_file_is_what_the_standard_library_reads() -> None:
    with wave.open(io.BytesIO(write_wav(tone(16_000, 100), 16_000))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 16_000)
        assert file.readframes(9999) == tone(16_000, 100)


def test_half_a_sample_is_not_written() -> None:
    assert read_wav(write_wav(b"abc", 8_000)) == (b"ab", 8_000)


def test_a_file_of_the_standard_library_is_read() -> None:
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(22_050)
        file.writeframes(tone(22_050, 50))
    assert read_wav(target.getvalue()) == (tone(22_050, 50), 22_050)


def test_other_chunks_are_stepped_over() -> None:
    data = riff(
        chunk(b"LIST", b"abc"), layout(), chunk(b"fact", b"1234"), chunk(b"data", b"wxyz"), chunk(b"id3 ", b"no")
    )
    assert read_wav(data) == (b"wxyz", 24_000)


@pytest.mark.parametrize("size", [0, 0xFFFF_FFFF, 0x7FFF_FFFF])
def test_a_streamed_file_has_samples_to_its_end(size: int) -> None:
    data = riff(layout(kind=0xFFFE), b"data" + struct.pack("<I", size) + b"wxyz!")
    head = read_header(data)
    assert head is not None
    assert head.size is None
    assert read_wav(data) == (b"wxyz", 24_000)


def test_samples_are_found_as_soon_as_the_header_is_there() -> None:
    data = riff(chunk(b"LIST", b"abc"), layout(), chunk(b"data", b"wxyz"))
    start = data.index(b"wxyz")
    assert all(read_header(data[:end]) is None for end in range(start))
    head = read_header(data[:start])
    assert head is not None
    assert (head.sample_rate, head.offset, head.size) == (24_000, start, 4)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"ID3 and so on", "no WAV"),
        (b"RIFF\0\0\0\0AVI xx", "no WAV"),
        (riff(chunk(b"data", b"wxyz")), "without a format"),
        (riff(chunk(b"fmt ", b"short"), chunk(b"data", b"wxyz" * 9)), "without a format"),
        (riff(layout(channels=2)), "2 channels of 16 bits"),
        (riff(layout(bits=8)), "1 channels of 8 bits"),
        (riff(layout(kind=3, bits=32)), "format 3"),
        (riff(layout(rate=0)), "format 1"),
        (riff(layout()), "cut off"),
        (b"", "cut off"),
        (riff(layout(), b"LIST" + struct.pack("<I", 10**9)), "no samples"),
    ],
)
def test_what_cannot_be_read_is_told(data: bytes, says: str) -> None:
    with pytest.raises(WavError, match=says):
        read_wav(data)


@given(st.binary(max_size=200))
def test_garbage_raises_nothing_else(data: bytes) -> None:
    for start in (b"", b"RIFF\0\0\0\0WAVE", riff(layout())):
        try:
            read_wav(start + data)
        except WavError:
            continue


@pytest.mark.parametrize(("source", "target"), [(16_000, 24_000), (22_050, 24_000), (44_100, 24_000), (24_000, 16_000)])
def test_a_stream_keeps_its_length_and_its_pitch(source: int, target: int) -> None:
    resampler, pcm = Resampler(source, target), tone(source, 1000)
    got = b"".join(resampler.feed(pcm[at : at + 777]) for at in range(0, len(pcm), 777)) + resampler.flush()
    assert duration(got, target) == pytest.approx(1.0, abs=0.001)
    assert peak_hz(got, target) == pytest.approx(440, abs=2)


@given(st.lists(st.integers(0, 400), max_size=8))
def test_cuts_between_the_bytes_of_a_sample_make_no_difference(cuts: list[int]) -> None:
    pcm = tone(16_000, 12)
    edges = [0, *sorted(min(cut, len(pcm)) for cut in cuts), len(pcm)]
    for rate in (16_000, 24_000):
        resampler = Resampler(16_000, rate)
        parts = [resampler.feed(pcm[start:end]) for start, end in itertools.pairwise(edges)]
        assert all(len(part) % 2 == 0 for part in parts)
        got = b"".join(parts) + resampler.flush()
        assert_alike(got, resample(pcm, 16_000, rate))


def test_most_of_a_stream_comes_at_once() -> None:
    resampler = Resampler(16_000, 24_000)
    got = sum(len(resampler.feed(tone(16_000, 20))) for _ in range(20))
    assert got >= size_of(400 - 75, 24_000)


def test_equal_rates_pass_through() -> None:
    resampler = Resampler(24_000, 24_000)
    assert resampler.feed(b"abc") + resampler.feed(b"d") == b"abcd"


def test_a_flushed_resampler_begins_anew() -> None:
    resampler = Resampler(16_000, 24_000)
    first = resampler.feed(tone(16_000, 100) + b"!") + resampler.flush()
    assert_alike(resampler.feed(tone(16_000, 100)) + resampler.flush(), first)

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.adapters.speech.pcm import write_wav
from fleet.adapters.speech.unwrap import Unwrapper

PCM = bytes(range(200))


def unwrap(data: bytes, cuts: list[int], kind: str = "", rate: int = 24_000) -> tuple[bytes, str]:
    unwrapper = Unwrapper(rate, kind)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    got = b"".join(unwrapper.feed(data[start:end]) for start, end in itertools.pairwise(edges))
    return got + unwrapper.end(), unwrapper.fault


cuts = st.lists(st.integers(0, 260), max_size=8)


@given(cuts)
def test_bare_samples_pass_however_they_are_cut(where: list[int]) -> None:
    assert unwrap(PCM, where, "audio/pcm") == (PCM, "")


@given(cuts)
def test_a_header_is_taken_off_however_it_is_cut(where: list[int]) -> None:
    assert unwrap(write_wav(PCM, 24_000), where, "application/octet-stream") == (PCM, "")


@given(cuts)
def test_what_stands_behind_the_samples_is_left_out(where: list[int]) -> None:
    assert unwrap(write_wav(PCM, 24_000) + b"LIST\x04\0\0\0junk", where) == (PCM, "")


def test_a_streamed_file_is_taken_to_its_end() -> None:
    data = bytearray(write_wav(PCM, 24_000))
    data[40:44] = struct.pack("<I", 0xFFFF_FFFF)
    assert unwrap(bytes(data), []) == (PCM, "")


def test_the_rate_of_the_header_wins() -> None:
    got, fault = unwrap(write_wav(bytes(48_000), 48_000), [100, 1001])
    assert (len(got), fault) == (24_000, "")


@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        (b"OggS" + PCM, "", "sent Ogg instead of PCM"),
        (b"fLaC" + PCM, "", "sent FLAC instead of PCM"),
        (b"ID3\x04" + PCM, "audio/mpeg", "sent MP3 instead of PCM"),
        (b"\xff\xfb\x90\x00" + PCM, "audio/mpeg", "sent audio/mpeg instead of PCM"),
        (b'{"error":"no"}', "application/json", "sent application/json instead of audio"),
        (b"<html>", "text/html", "sent text/html instead of audio"),
        (b"RIFF\0\0\0\0WAVEfmt ", "", "sent the beginning of a WAV file"),
        (b"RIFF\0\0\0\0AVI LIST", "", "sent wav: no WAV file"),
    ],
)
def test_what_is_no_pcm_is_a_fault_and_never_played(data: bytes, kind: str, says: str) -> None:
    assert unwrap(data, [5, 9], kind) == (b"", says)


def test_samples_that_look_like_mp3_are_played_when_not_called_so() -> None:
    quiet = b"\xff\xfb" * 20
    assert unwrap(quiet, [], "audio/pcm") == (quiet, "")


def test_pcm_that_is_called_mp3_is_played() -> None:
    assert unwrap(PCM, [], "audio/mpeg") == (PCM, "")

"""Files for notifications: what firmware 2.5 takes, and what it gives up on."""

import pytest

from fleet.adapters.speech.opus import silence
from fleet.workbench.sim.audio.ogg import OggError, OggReader
from tests.support.ogg import write_opus

PACKETS = [silence(24_000, 60), b"\x58" + bytes(254), b"\x58" + bytes(600), *[b"\x58x"] * 20]


def read_opus(content: bytes, piece: int = 1024) -> list[bytes]:
    """Read a file in pieces."""
    reader = OggReader()
    packets = [one for at in range(0, len(content), piece) for one in reader.feed(content[at : at + piece])]
    reader.finish()
    return packets


def test_the_packets_come_out_as_they_went_in_whatever_their_length() -> None:
    for piece in (1, 100, 1024, 100_000):
        assert read_opus(write_opus(PACKETS), piece) == PACKETS


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no Opus stream"),
        (b"ID3 an mp3 file with a long head......", "no Ogg page"),
        (write_opus(PACKETS, channels=2), "not mono"),
        (write_opus([]), "no audio"),
        (write_opus(PACKETS)[:-3], "in the midst of a page"),
        (write_opus([b"\x58" + bytes(3000)]), "more than 2048 bytes"),
        (write_opus(PACKETS) + write_opus(PACKETS).replace(b"\x07\0\0\0", b"\x08\0\0\0"), "more than one stream"),
    ],
)
def test_what_is_no_whole_mono_stream_is_given_up(content: bytes, reason: str) -> None:
    with pytest.raises(OggError, match=reason):
        read_opus(content)

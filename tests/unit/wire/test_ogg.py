"""Clips for notifications: what the simulated device, which reads as firmware does, makes of them."""

from fleet.wire.messages import AudioFormat
from fleet.wire.ogg import write_ogg
from fleet.workbench.sim.audio.ogg import OggReader
from tests.support.ogg import checksum

PACKETS = [b"\x58" + bytes(n) for n in (0, 1, 253, 254, 255, 509, 600, *range(40))]


def test_a_reader_gets_back_the_packets_of_any_length_and_one_packet_is_enough() -> None:
    for packets in (PACKETS, PACKETS[:1], PACKETS[:8], PACKETS[:9]):
        reader = OggReader()
        assert reader.feed(write_ogg(packets, AudioFormat(24_000, 60))) == packets
        reader.finish()


def test_the_head_names_one_channel_and_the_rate_to_which_firmware_decodes() -> None:
    content = write_ogg(PACKETS, AudioFormat(16_000, 20))
    head = content.index(b"OpusHead")
    assert content[head + 9] == 1
    assert int.from_bytes(content[head + 12 : head + 16], "little") == 16_000


def test_every_page_has_its_checksum_and_the_last_one_the_length_and_the_end() -> None:
    content = write_ogg(PACKETS, AudioFormat(24_000, 60))
    starts = [at for at in range(len(content)) if content.startswith(b"OggS\0", at)]
    for at, end in zip(starts, [*starts[1:], len(content)], strict=True):
        page = content[at:end]
        assert int.from_bytes(page[22:26], "little") == checksum(page[:22] + bytes(4) + page[26:])
    last = content[starts[-1] :]
    assert (content[starts[0] + 5], last[5]) == (2, 4)
    assert int.from_bytes(last[6:14], "little") == len(PACKETS) * 60 * 48

import struct

from fleet.sim.microphone import Utterance
from fleet.sim.uplink import UplinkEncoder, encode_all

SECOND = 16_000


def _speech(silence_before: float, speech: float, silence_after: float) -> bytes:
    quiet = struct.pack("<h", 0)
    loud = struct.pack("<2h", 9000, -9000)
    return quiet * int(silence_before * SECOND) + loud * int(speech * SECOND / 2) + quiet * int(silence_after * SECOND)


def test_an_utterance_knows_when_its_speech_was_captured() -> None:
    utterance = Utterance(_speech(0.4, 1.0, 0.3))
    size, captured = 1920, 100.0
    while not utterance.over:
        captured += 0.06
        assert len(utterance.take(size, captured)) == size
    assert utterance.began is not None
    assert utterance.ended is not None
    assert round(utterance.began, 3) == 100.4
    assert round(utterance.ended, 3) == 101.4


def test_an_utterance_that_is_cut_off_has_no_end() -> None:
    utterance = Utterance(_speech(0.0, 1.0, 0.0))
    utterance.take(1920, 0.06)
    assert utterance.began == 0.0
    assert utterance.ended is None


def test_silence_becomes_one_byte_after_a_while_and_is_refreshed() -> None:
    encoder = UplinkEncoder(60)
    sizes = [len(encoder.encode(bytes(encoder.frame_bytes))) for _ in range(30)]
    assert all(size > 1 for size in sizes[:3])
    assert sizes[3:].count(1) > 20
    assert any(size > 1 for size in sizes[10:])


def test_speech_is_never_sent_as_silence() -> None:
    packets = encode_all(_speech(0.0, 2.0, 0.0), 60)
    assert all(len(packet) > 1 and packet[0] >> 3 == 11 for packet in packets)

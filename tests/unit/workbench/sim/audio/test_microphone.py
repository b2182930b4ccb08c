import random
import struct
from itertools import pairwise

import pytest

from fleet.workbench.sim.audio.echo_references import EchoReferences
from fleet.workbench.sim.audio.encoder import SAMPLE_RATE, UplinkEncoder, encode_all, room_noise
from fleet.workbench.sim.audio.microphone import SEND_QUEUE, Microphone, Utterance
from fleet.workbench.sim.audio.recording import read_recording
from fleet.workbench.sim.records.change_signal import ChangeSignal
from tests.support.recordings import DATA

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


def test_the_first_three_or_four_frames_of_silence_and_one_in_seven_are_whole() -> None:
    encoder = UplinkEncoder(60)
    sizes = [len(encoder.encode(bytes(encoder.frame_bytes))) for _ in range(60)]
    whole = [number for number, size in enumerate(sizes) if size > 1]
    assert whole[:3] == [0, 1, 2]
    assert {after - before for before, after in pairwise(whole[3:])} == {7}


def test_the_noise_of_a_room_is_not_left_out() -> None:
    packets = encode_all(room_noise(33, 60, random.Random(1)), 60)
    assert len(packets) == 33
    assert sum(len(packet) == 1 for packet in packets) <= 3


def test_a_recording_keeps_its_frames_and_the_silence_after_it_is_left_out() -> None:
    speech = read_recording(DATA / "wav" / "en_hibari_02.wav")
    packets = encode_all(speech + bytes(SAMPLE_RATE * 4), 60)
    said, silent = packets[: len(speech) // 1920], packets[-30:]
    assert sum(len(packet) > 1 for packet in said) > 0.6 * len(said)
    assert sum(len(packet) == 1 for packet in silent) >= 24
    assert max(map(len, packets)) <= 234


def test_py_xiaozhi_sends_20_ms_frames_of_the_voip_kind() -> None:
    encoder = UplinkEncoder(20, "voip")
    packet = encoder.encode(_speech(0.0, 0.02, 0.0))
    assert encoder.frame_bytes == 640
    assert packet[0] >> 3 == 9


class Bench:
    """A microphone at a clock that the test moves."""

    def __init__(self, frame_ms: int = 60) -> None:
        self.now = 100.0
        self.ready = 0
        references = EchoReferences(enabled=True)
        self.references = references
        self.microphone = Microphone(UplinkEncoder(frame_ms), references, lambda: self.now, ChangeSignal(), self.note)

    def note(self) -> None:
        self.ready += 1

    def run_to(self, seconds: float) -> None:
        while self.now < 100.0 + seconds - 1e-9:
            self.now += 0.01
            self.microphone.advance(self.now)

    def waiting(self) -> int:
        count = 0
        while self.microphone.pop():
            count += 1
        return count


@pytest.mark.parametrize(("warm_up", "first"), [(0.12, 0.18), (0.18, 0.24)])
def test_the_first_packet_comes_180_to_240_ms_after_the_start(warm_up: float, first: float) -> None:
    bench = Bench()
    bench.microphone.start(warm_up)
    bench.run_to(first - 0.015)
    assert bench.ready == 0
    bench.run_to(first + 0.015)
    assert bench.ready == 1
    bench.run_to(first + 0.06 * 10 + 0.015)
    assert bench.ready == 11


@pytest.mark.parametrize("warm_up", [0.12, 0.18])
def test_a_packet_leaves_as_soon_as_its_frame_is_complete(warm_up: float) -> None:
    bench = Bench()
    bench.microphone.start(warm_up)
    said = Utterance(_speech(0.0, 0.06, 0.3))
    bench.microphone.hear(said)
    while bench.ready == 0:
        bench.run_to(bench.now - 100.0 + 0.01)
    assert said.ended == pytest.approx(100.0 + warm_up + 0.06)
    assert bench.now - said.ended < 0.02, "the wait at the beginning is no delay of every packet"


def test_nothing_is_captured_after_the_stop_and_what_waits_is_still_sent() -> None:
    bench = Bench()
    bench.microphone.start(0.18)
    bench.run_to(1.0)
    before = bench.ready
    bench.microphone.stop()
    bench.run_to(2.0)
    assert bench.ready == before
    assert bench.waiting() == before
    assert not bench.microphone.running


def test_while_the_main_loop_is_blocked_40_packets_wait_and_the_oldest_goes() -> None:
    bench = Bench()
    bench.microphone.start(0.12)
    bench.run_to(3.6)
    assert bench.microphone.lost > 10
    assert bench.waiting() == SEND_QUEUE


def test_each_captured_frame_takes_a_timestamp_along() -> None:
    bench = Bench()
    bench.microphone.start(0.0)
    bench.references.played(60)
    bench.run_to(0.2)
    stamps = [packet.timestamp for packet in iter(bench.microphone.pop, None)]
    assert stamps == [60, 0, 0]


def test_starting_the_microphone_forgets_what_was_played_before() -> None:
    bench = Bench()
    bench.references.played(60)
    bench.microphone.start(0.0)
    bench.run_to(0.07)
    packet = bench.microphone.pop()
    assert packet is not None
    assert packet.timestamp == 0

"""A judge must be able to condemn: each is shown a capture that is right, and ones that are not."""

from itertools import count

import pytest

from fleet.adapters.speech.opus import Encoder, silence
from fleet.workbench.conformance.judge import (
    decode,
    judge_forms,
    judge_keystream,
    judge_sequences,
    judge_spacing,
    judge_timestamps,
    play,
    silent_head,
)
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.scripted.capture import Datagram

RATE, FRAME_MS = 24_000, 60
NONCE = bytes.fromhex("01000000112233440000000000000000")
QUIET = silence(RATE, FRAME_MS)


def datagram(
    sequence: int,
    at: float = 0.0,
    *,
    payload: bytes = QUIET,
    flags: int = 0x80,
    timestamp: int | None = None,
    kind: int = 1,
    length: int | None = None,
    epoch: int = 1,
) -> Datagram:
    stamp = sequence * FRAME_MS if timestamp is None else timestamp
    size = len(payload) if length is None else length
    header = bytes((kind, flags)) + size.to_bytes(2) + NONCE[4:8] + stamp.to_bytes(4) + sequence.to_bytes(4)
    return Datagram(at, header + payload, payload, epoch=epoch)


def stream(times: list[float]) -> list[Datagram]:
    return [datagram(number, at) for number, at in zip(count(1), times, strict=False)]


def steady(packets: int, lead: int = 4) -> list[Datagram]:
    """A good server: the first packets 10 ms apart, then one every 60 ms."""
    return stream(
        [number * 0.01 for number in range(lead)] + [0.06 * number for number in range(1, packets - lead + 1)]
    )


def test_rising_numbers_across_turns_and_a_new_hello_pass() -> None:
    capture = [datagram(1), datagram(2), datagram(5), datagram(1, epoch=2), datagram(2, epoch=2)]
    assert judge_sequences(capture) == "sequence numbers 1 to 5, then 1 to 2"


@pytest.mark.parametrize(
    ("numbers", "complaint"),
    [([0, 1, 2], "never accepts 0"), ([1, 2, 2], "2 came after 2"), ([1, 2, 3, 1, 2], "1 came after 3")],
)
def test_numbers_that_firmware_drops_fail(numbers: list[int], complaint: str) -> None:
    with pytest.raises(Failed, match=complaint):
        judge_sequences([datagram(number) for number in numbers])


def test_no_datagram_at_all_fails() -> None:
    for judge in (judge_sequences, judge_forms, judge_spacing, judge_timestamps):
        with pytest.raises(Failed, match="no datagram"):
            judge([])


def test_separate_keystreams_pass() -> None:
    uplink = [(datagram(number, flags=0, timestamp=0).raw[:16], 100) for number in range(1, 50)]
    assert "no keystream used twice" in judge_keystream(NONCE, uplink, steady(50))


def test_equal_headers_in_both_directions_fail() -> None:
    with pytest.raises(Failed, match="keystream for a second time"):
        judge_keystream(
            NONCE,
            [(datagram(3, flags=0, timestamp=0).raw[:16], len(QUIET))],
            [datagram(3, flags=0, timestamp=0)],
        )


def test_neighbours_of_equal_length_without_timestamps_fail() -> None:
    long = bytes(100)
    with pytest.raises(Failed, match="datagram 2"):
        judge_keystream(NONCE, [], [datagram(1, payload=long, timestamp=0), datagram(2, payload=long, timestamp=0)])


def test_the_flags_of_the_nonce_fail() -> None:
    with pytest.raises(Failed, match="flags of the nonce"):
        judge_keystream(NONCE, [], [datagram(1, flags=NONCE[1])])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (datagram(1, payload=b"\xf8"), "17 bytes"),
        (datagram(1, payload=bytes(1300)), "1316 bytes"),
        (datagram(1, kind=2), "type 2"),
        (datagram(1, length=3), "3 of"),
    ],
)
def test_datagrams_that_firmware_drops_fail(wrong: Datagram, complaint: str) -> None:
    assert judge_forms(steady(5))
    with pytest.raises(Failed, match=complaint):
        judge_forms([wrong])


def test_packets_10_ms_apart_pass() -> None:
    assert "at most 3 within 20 ms" in judge_spacing(steady(20))


def test_a_burst_at_once_fails() -> None:
    with pytest.raises(Failed, match="at most 6 within 20 ms"):
        judge_spacing(stream([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.06]))


def test_packets_3_ms_apart_fail() -> None:
    with pytest.raises(Failed, match=r"any 3 within 6\.0 ms"):
        judge_spacing(stream([0.0, 0.003, 0.006, 0.06]))


def test_one_packet_that_was_held_up_is_no_burst() -> None:
    assert judge_spacing(stream([0.008, 0.010, 0.020, 0.030]))


def test_a_burst_later_on_does_not_count() -> None:
    assert judge_spacing(stream([0.0, 0.06, *[0.9] * 10]))


def test_good_timestamps_pass_and_bad_ones_fail() -> None:
    assert judge_timestamps(steady(10))
    with pytest.raises(Failed, match="no reference"):
        judge_timestamps([datagram(1, timestamp=0)])
    with pytest.raises(Failed, match="60 came after 60"):
        judge_timestamps([datagram(1, timestamp=60), datagram(2, timestamp=60)])
    with pytest.raises(Failed, match="20 ms"):
        judge_timestamps([datagram(1, payload=silence(RATE, 20))])


def test_a_steady_stream_never_runs_dry_nor_over() -> None:
    playback = play(steady(100))
    assert playback.deepest <= 4
    assert playback.gaps == ()
    assert playback.ended == pytest.approx(100 * 0.06)


def test_everything_at_once_fills_the_queue() -> None:
    assert play(stream([0.001 * number for number in range(100)])).deepest > 38


def test_a_pause_in_the_stream_is_an_underrun() -> None:
    playback = play(stream([0.0, 0.06, 0.12, 0.5]))
    assert playback.longest_gap == pytest.approx(0.5 - 0.18)


def test_the_voice_is_found_in_what_was_decoded() -> None:
    encoder = Encoder(RATE, FRAME_MS)
    pcm = voice.say(123, 1.2, rate=RATE)
    size = encoder.frame_bytes
    packets = [encoder.encode(pcm[at : at + size]) for at in range(0, len(pcm), size)]
    capture = [datagram(number, payload=packet) for number, packet in zip(count(1), packets, strict=False)]
    assert voice.dominant(voice.read(decode(capture, RATE, FRAME_MS), RATE))[123] == pytest.approx(1.2, abs=0.15)


def test_wrong_packets_are_not_decoded() -> None:
    stereo = bytes((QUIET[0] | 4,)) + QUIET[1:]
    with pytest.raises(Failed, match="stereo"):
        decode([datagram(1, payload=stereo)], RATE, FRAME_MS)
    with pytest.raises(Failed, match="lasts 20 ms instead of 60"):
        decode([datagram(1, payload=silence(RATE, 20))], RATE, FRAME_MS)
    with pytest.raises(Failed, match="no Opus"):
        decode([datagram(1, payload=bytes((QUIET[0] & 0xF8 | 3, 0xC3, 255, 255)))], RATE, FRAME_MS)


def test_the_silent_head_ends_at_the_first_sound() -> None:
    encoder = Encoder(RATE, FRAME_MS)
    loud = encoder.encode(voice.hum(0.06, rate=RATE))
    assert silent_head([datagram(1), datagram(2), datagram(3, payload=loud)], RATE) == 2
    assert silent_head([datagram(1)], RATE) == 1

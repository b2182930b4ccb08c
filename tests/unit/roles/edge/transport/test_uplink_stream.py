"""Which packets are believed. Ten minutes of forging without the key: tests/security/test_audio_forging.py."""

from random import Random

import pytest

from tests.support.audio_air import AWAY, HOME, STRANGER, Air, header, noise, seal, speech

FRAME = 0.06


def begun(air: Air, packets: int = 10) -> float:
    """Let the device speak from HOME; return when its next packet is due."""
    return air.stream_on(range(1, packets + 1), 0.0)


def junk(sequence: int) -> bytes:
    """Return a datagram whose payload is no audio."""
    return seal(b"\x00" * 30, sequence)


def test_no_packet_is_lost_by_the_proof_of_the_first_address() -> None:
    air = Air()
    air.send([1, 2, 3], 0.0)
    assert (air.homes[-1], air.numbers) == (None, [])
    air.send([4], 0.18)
    assert (air.homes[-1], air.numbers) == (HOME, [1, 2, 3, 4])
    assert not air.drops


def test_a_wake_words_burst_is_used_whole() -> None:
    air = Air()
    air.send(range(1, 34), 0.005)
    air.stream_on(range(34, 60), 0.4)
    assert air.numbers == list(range(1, 60))


def test_a_packet_lost_before_the_first_proof_costs_no_other() -> None:
    air = Air()
    air.send([1, 2, 4, 5, 6, 7, 8, 9, 10, 11], 0.0)
    assert air.numbers == [1, 2, 4, 5, 6, 7, 8, 9, 10, 11]


def test_what_a_busy_board_held_back_is_used_whole() -> None:
    air = Air()
    now = begun(air) + 40 * FRAME
    air.send(range(11, 51), now)
    assert air.numbers == list(range(1, 51))


def test_a_gap_and_a_pause_cost_no_packet() -> None:
    air = Air()
    now = air.stream_on(range(40, 60), begun(air) + 29 * FRAME)
    air.stream_on(range(60, 70), now + 100)
    assert air.numbers == [*range(1, 11), *range(40, 70)]


def test_a_new_port_is_followed_within_a_quarter_of_a_second_and_no_packet_is_lost() -> None:
    air = Air()
    now = begun(air)
    air.stream_on(range(11, 15), now, AWAY)
    assert air.homes == [None, HOME, AWAY]
    assert air.numbers == list(range(1, 15))


def test_a_new_port_is_followed_when_the_burst_of_a_busy_board_comes_from_it() -> None:
    air = Air()
    now = begun(air) + 30 * FRAME
    air.send(range(11, 41), now, AWAY)
    air.stream_on(range(41, 45), now + FRAME, AWAY)
    assert air.homes == [None, HOME, AWAY]
    assert air.numbers == list(range(1, 45))


def test_after_a_bad_packet_more_good_ones_are_needed() -> None:
    air = Air()
    now = begun(air)
    now = air.stream_on(range(11, 14), now, AWAY)
    air.take(junk(14), AWAY, now)
    now = air.stream_on([14], now, AWAY)
    assert air.homes == [None, HOME]
    air.send([15], now, AWAY)
    assert air.homes == [None, HOME, AWAY]
    assert air.numbers == list(range(1, 16))


def test_packets_with_many_numbers_between_them_prove_no_address() -> None:
    air = Air()
    air.stream_on(range(12, 80, 4), begun(air), AWAY)
    assert air.homes == [None, HOME]


def test_an_unproved_address_claims_no_number() -> None:
    air = Air()
    now = begun(air)
    air.send([11, 12, 13], now, STRANGER)
    air.send([500, 501, 502], now, STRANGER)
    air.stream_on(range(11, 40), now)
    assert air.numbers == list(range(1, 40))
    assert air.homes == [None, HOME]


def test_packets_that_are_dropped_use_up_nothing() -> None:
    air, random = Air(), Random(1)
    now = begun(air)
    for number in range(11, 200):
        for _ in range(30):
            air.take(noise(random, number + 1, 1), STRANGER, now)
        now = air.stream_on([number], now)
    assert air.numbers == list(range(1, 200))
    assert not air.drops["rate"]


def test_one_good_packet_does_not_jump() -> None:
    air = Air()
    now = begun(air)
    for number in (40, 60, 80):
        air.send([number], now)
    air.stream_on(range(11, 30), now)
    assert air.numbers == list(range(1, 30))


def test_numbers_cannot_run_ahead_of_the_clock() -> None:
    air = Air()
    now = begun(air)
    air.stream_on(range(150, 170), now)
    assert air.numbers == list(range(1, 11))
    assert air.drops["jump"] == 20
    air.send(range(170, 180), now + 5.0)
    assert air.numbers[-1] == 179, "by then a device can have sent so many"


def test_a_jump_that_was_none_is_undone_and_nothing_is_used_twice() -> None:
    air = Air()
    now = begun(air) + 60
    air.send(range(500, 510), now)
    air.stream_on(range(11, 20), now + 1)
    assert air.numbers == [*range(1, 11), *range(500, 510), *range(11, 20)]
    air.send([*range(1, 20), *range(500, 510)], now + 2)
    assert len(air.numbers) == len(set(air.numbers))
    assert air.drops["replay"] == 29


def test_packets_that_come_late_are_put_right() -> None:
    air = Air()
    now = begun(air)
    air.send([13, 11, 12, 15, 14], now)
    assert air.numbers == list(range(1, 16))


def test_another_first_byte_of_the_same_length_is_no_packet_of_a_device_that_keeps_its_own() -> None:
    air = Air()
    now = begun(air)
    air.send([11, 12, 13], now, toc=0x38)
    air.stream_on(range(11, 30), now)
    assert air.numbers == list(range(1, 30))
    assert not air.drops["not_audio"]


def test_an_encoder_that_changes_its_first_byte_for_good_is_followed() -> None:
    air = Air()
    now = begun(air)
    now = air.stream_on(range(11, 15), now, toc=0x18)
    air.stream_on(range(15, 20), now, toc=0x18)
    assert air.numbers == list(range(1, 20))


def test_an_encoder_that_goes_on_changing_it_is_heard() -> None:
    air = Air(frame_ms=20)
    for number in range(1, 60):
        air.send([number], number * 0.02, toc=(0x48, 0x48, 0xB8)[number % 3])
    assert air.numbers == list(range(1, 60))


@pytest.mark.parametrize("rate", [8_000, 24_000])
def test_of_other_rates_the_length_is_enough(rate: int) -> None:
    air = Air(frame_ms=20, sample_rate=rate)
    for number in range(1, 60):
        air.send([number], number * 0.02, toc=(0x48, 0xB8)[number % 2])
    assert air.numbers == list(range(1, 60))


def test_silence_of_one_byte_is_audio_like_any_other() -> None:
    air = Air()
    now = begun(air)
    for number in range(11, 40):
        air.take(seal(b"\x58", number), HOME, now)
        now += FRAME
    air.stream_on(range(40, 50), now)
    assert air.numbers == [*range(1, 11), *range(40, 50)]
    assert air.order.lost == air.drops.total() == 0


def test_payloads_without_a_sign_of_the_key_are_silence_once_nothing_else_comes() -> None:
    air = Air()
    now = begun(air)
    for number in range(11, 61):
        air.take(seal(b"", number), HOME, now)
        now += FRAME
    assert 40 <= air.silences <= 46
    air.stream_on(range(61, 70), now)
    assert air.numbers == [*range(1, 11), *range(61, 70)]


def test_payloads_without_a_sign_of_the_key_claim_no_number() -> None:
    air = Air()
    now = begun(air)
    for number in range(11, 60):
        for ahead in range(3):
            air.take(header(0, number + ahead), HOME, now)
        now = air.stream_on([number], now)
    assert air.numbers == list(range(1, 60))
    assert not air.silences


def test_who_copies_what_the_device_sends_does_not_get_its_answers() -> None:
    """A relay that is always first, from another address."""
    air = Air()
    now = begun(air)
    for number in range(11, 500):
        air.send([number], now, STRANGER)
        air.send([number], now + 0.01)
        now += FRAME
    assert air.homes == [None, HOME]
    assert air.numbers == list(range(1, 500))


def test_who_copies_what_the_device_sends_after_a_pause_does_not_get_its_answers() -> None:
    air = Air()
    now = begun(air)
    for turn in range(5):
        now += 10
        for number in range(11 + 40 * turn, 51 + 40 * turn):
            air.send([number], now, STRANGER)
            air.send([number], now + 0.01)
            now += FRAME
    assert air.homes == [None, HOME]
    assert air.numbers == list(range(1, 211))


def test_who_copies_a_burst_does_not_get_the_answers() -> None:
    air = Air()
    now = begun(air) + 40 * FRAME
    air.send(range(11, 51), now, STRANGER)
    air.send(range(11, 51), now + 0.01)
    assert air.homes == [None, HOME]
    assert air.numbers == list(range(1, 51))


def test_a_copy_that_was_taken_for_the_device_loses_the_answers_at_once_when_the_device_goes_on() -> None:
    """Its packets were held up while copies of them came."""
    air = Air()
    now = begun(air)
    now = air.stream_on(range(11, 17), now, STRANGER)
    assert air.homes[-1] == STRANGER
    air.send(range(11, 17), now)
    for number in range(17, 60):
        air.send([number], now, STRANGER)
        air.send([number], now)
        now += FRAME
    assert air.homes == [None, HOME, STRANGER, HOME]
    assert air.numbers == list(range(1, 60))


def test_a_copy_that_falls_behind_the_device_loses_the_answers_too() -> None:
    air = Air()
    now = begun(air)
    now = air.stream_on(range(11, 17), now, STRANGER)
    for number in range(17, 30):
        air.send([number], now)
        air.send([number], now + 0.01, STRANGER)
        now += FRAME
    assert air.homes == [None, HOME, STRANGER, HOME]


def test_the_device_is_followed_though_somebody_forges_in_the_name_of_its_new_address() -> None:
    air, random = Air(), Random(2)
    now = begun(air)
    for number in range(11, 40):
        now = air.stream_on([number], now, AWAY)
        for _ in range(30):
            air.take(noise(random, number + random.randint(1, 3)), AWAY, now)
    assert air.homes == [None, HOME, AWAY]
    at = next(at for at, number in air.heard if number > 10)
    assert at < 11 * FRAME + 1.0


def test_packets_that_were_sent_by_the_server_are_refused() -> None:
    air = Air()
    now = begun(air)
    air.take(seal(speech(11), 11, flags=0x80), HOME, now)
    assert air.drops == {"flags": 1}


def ports(count: int) -> list[tuple[str, int]]:
    return [("198.51.100.9", 10_000 + number) for number in range(count)]


def bent(number: int, random: Random) -> bytes:
    """Return a datagram of the device whose payload was changed behind its first byte."""
    datagram = seal(speech(number), number)
    return datagram[:20] + random.randbytes(len(datagram) - 20)


@pytest.mark.parametrize("change", [False, True], ids=["as they are", "changed"])
def test_copies_from_many_addresses_do_not_hold_up_the_first_proof(*, change: bool) -> None:
    air, strangers, random = Air(), iter(ports(1000)), Random(1)
    for number in range(1, 31):
        air.send([number], number * FRAME)
        for _ in range(30):
            copy = bent(number, random) if change else seal(speech(number), number)
            air.take(copy, next(strangers), number * FRAME + 0.005)
    assert air.homes == [None, HOME]
    assert air.numbers == list(range(1, 31))


@pytest.mark.parametrize("change", [False, True], ids=["as they are", "changed"])
def test_copies_from_many_addresses_do_not_hold_up_a_new_port(*, change: bool) -> None:
    air, strangers, random = Air(), iter(ports(1000)), Random(1)
    begun(air)
    for number in range(11, 41):
        air.send([number], number * FRAME, AWAY)
        for _ in range(30):
            copy = bent(number, random) if change else seal(speech(number), number)
            air.take(copy, next(strangers), number * FRAME + 0.005)
    assert air.homes == [None, HOME, AWAY]
    assert air.numbers == list(range(1, 41))


@pytest.mark.parametrize("source", [HOME, None], ids=["in the device's name", "from many addresses"])
def test_packets_that_were_lost_before_hold_up_nothing_when_they_come_again_and_again(source: object) -> None:
    air, strangers = Air(), iter(ports(10_000))
    lost = (60, 50, 40, 30, 20)
    now = air.stream_on([number for number in range(1, 80) if number not in lost], 0.0) + 10
    for number in range(80, 120):
        now = air.stream_on([number], now, HOME if source else AWAY)
        for copy in lost * (1 if source else 4):
            air.send([copy], now - 0.05, HOME if source else next(strangers))
    assert set(range(80, 120)) <= set(air.numbers)
    assert air.homes == ([None, HOME] if source else [None, HOME, AWAY])


@pytest.mark.parametrize("bad", [30, 62, 90, 150])
def test_a_flood_in_the_devices_name_makes_the_proof_after_a_pause_longer_and_loses_nothing(bad: int) -> None:
    air, random = Air(), Random(bad)
    now = begun(air) + 10
    for number in range(11, 75):
        now = air.stream_on([number], now)
        for _ in range(bad):
            air.take(noise(random, number + random.randint(1, 3)), HOME, now)
    # Of numbers that a guess took, 60 ms are noise.
    assert len(set(air.numbers)) >= 74 * (1 - bad / 256 * 1.5)


def test_the_device_is_heard_at_once_when_live_copies_of_its_packets_stop() -> None:
    """They came first after its port had changed, and were taken for it."""
    air = Air()
    now = begun(air)
    for number in range(11, 311):
        air.send([number], now, STRANGER)
        air.send([number], now + 0.005, AWAY)
        now += FRAME
    air.stream_on(range(311, 330), now, AWAY)
    assert air.homes == [None, HOME, STRANGER, AWAY]
    assert set(range(320, 330)) <= set(air.numbers)
    assert air.numbers == sorted(set(air.numbers))


def test_scattered_packets_that_were_lost_do_not_move_the_downlink() -> None:
    air = Air()
    lost = (30, 45, 57, 66)
    now = air.stream_on([number for number in range(1, 80) if number not in lost], 0.0) + 5
    for number in lost:
        now = air.stream_on([number], now, STRANGER)
    assert air.homes == [None, HOME]


def test_an_utterance_that_was_held_back_is_not_heard_later_from_another_address() -> None:
    air = Air()
    now = air.stream_on([*range(1, 20), *range(60, 100)], 0.0) + 20
    air.stream_on(range(20, 60), now, STRANGER)
    assert air.homes == [None, HOME]
    assert not set(range(20, 60)) & set(air.numbers)


def test_a_former_address_comes_back_though_somebody_forges_in_its_name() -> None:
    air, random = Air(), Random(3)
    now = begun(air)
    now = air.stream_on(range(11, 17), now, STRANGER)
    assert air.homes[-1] == STRANGER
    for number in range(11, 60):
        air.send([number], now, STRANGER)
        air.send([number], now + 0.005)
        air.take(noise(random, number), HOME, now + 0.01)
        now += FRAME
    assert air.homes == [None, HOME, STRANGER, HOME]


@pytest.mark.parametrize("rate", [500, 6000])
def test_guesses_from_many_addresses_do_not_hold_up_a_new_port(rate: int) -> None:
    air, strangers, random = Air(), ports(60_000), Random(rate)
    begun(air)
    for number in range(11, 41):
        air.send([number], number * FRAME, AWAY)
        for _ in range(rate * 6 // 100):
            air.take(noise(random, number + random.randint(1, 3)), random.choice(strangers), number * FRAME + 0.005)
    assert air.homes == [None, HOME, AWAY]
    assert air.numbers == list(range(1, 41))

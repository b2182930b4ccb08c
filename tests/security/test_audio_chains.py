"""What somebody can do who sees the device's datagrams and sends others, in virtual time over the edge's real classes.

Each case deafened a device, or moved its downlink, before streams were proved by a sequential test (docs/adr/0019).
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

from fleet.roles.edge.transport import proof
from fleet.roles.edge.transport.sequential_test import follow
from tests.support.audio_air import AWAY, HOME, STRANGER, TOCS, Address, Air, noise, seal, speech

FRAME = 0.06
PORTS = [("203.0.113.7", port) for port in range(1024, 65_000)]


def guesses(air: Air, random: Random, count: int, number: int, source: Address, now: float) -> None:
    """Send random bytes with the next numbers."""
    for _ in range(count):
        air.take(noise(random, number + random.randint(1, 3)), source, now)


def deafness(air: Air, numbers: Iterable[int], period: float = FRAME) -> float:
    """Return the longest wait of a packet, in seconds; all of them have to be heard."""
    heard = {number: when for when, number in reversed(air.heard)}
    return max(heard[number] - (number - 1) * period for number in numbers)


@pytest.mark.parametrize("burst", [60, 160, 330])
def test_guesses_in_bursts_make_nobody_deaf(burst: int) -> None:
    """On average 6 to 30 for each packet of the device; a steady flood of the same kind never did."""
    air, random = Air(), Random(burst)
    for number in range(1, 1000):
        now = (number - 1) * FRAME
        air.send([number], now)
        guesses(air, random, 1 + (burst if number % 11 == 0 else 0), number, HOME, now)
    assert air.homes == [None, HOME]
    lost = set(range(1, 1000)) - set(air.numbers)
    assert len(lost) < 1000 * (1 + burst / 11) / 256 * 1.6
    assert deafness(air, set(range(1, 1000)) - lost) <= 1.0


@pytest.mark.parametrize("rate", [500, 2000])
def test_one_source_port_gets_nowhere_by_using_others_between_its_guesses(rate: int) -> None:
    air, random = Air(), Random(rate)
    now = air.stream_on(range(1, 11), 0.0)
    for tick in range(rate * 30):
        source = STRANGER if tick % 65 == 0 else PORTS[tick % len(PORTS)]
        # The best that it can do: it goes on with each guess that was right, though it cannot know.
        right = air.stream._candidates._held.get(source, {10: []})
        air.take(noise(random, max(right) + 1), source, now + tick / rate)
    assert air.homes == [None, HOME]


@pytest.mark.parametrize("first", [1, 11])
def test_late_copies_and_guesses_in_the_devices_name_do_not_get_the_answers(first: int) -> None:
    """At the beginning of a session, and after a pause."""
    air, random, last = Air(), Random(first), first + 300
    if first > 1:
        air.stream_on(range(1, first), -30.0)
    for number in range(first, last):
        now = (number - 1) * FRAME
        air.send([number], now)
        guesses(air, random, 250 if number % 9 == 0 else 2, number, HOME, now + 0.001)
        air.send([number], now + 0.02, STRANGER)
    assert STRANGER not in air.homes


def changed_copy(random: Random, number: int, toc: int) -> bytes:
    """Return a copy of a packet with another body. Its length cannot be changed without the key."""
    copy = seal(speech(number, toc), number)
    return copy[:17] + random.randbytes(len(copy) - 17)


@pytest.mark.parametrize("frame_ms", [20, 60])
@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("begun", [0, 150])
@pytest.mark.parametrize("rate", [17, 100, 450])
def test_late_copies_and_guesses_do_not_get_the_answers_where_only_the_length_counts(
    frame_ms: int, changed: bool, begun: int, rate: int
) -> None:
    """At the beginning of a session, and after a pause of two seconds."""
    air, random, period = Air(frame_ms, 24_000), Random(rate + frame_ms), frame_ms / 1000
    begin = air.stream_on(range(1, begun + 1), 0.0) + 2
    for tick in range(round(20 / period)):
        now, number = begin + tick * period, begun + 1 + tick
        air.send([number], now)
        for _ in range(int((tick + 1) * rate * period) - int(tick * rate * period)):
            air.take(noise(random, number + random.randint(1, 3)), HOME, now + 0.001)
        copied = number - max(1, round(0.03 / period))
        if copied > begun:
            copy = changed_copy(random, copied, air.toc) if changed else seal(speech(copied, air.toc), copied)
            air.take(copy, STRANGER, now + 0.002)
    assert STRANGER not in air.homes


def turned(number: int, frame_ms: int, mask: int) -> bytes:
    """Return a copy of a packet with another first byte of the same duration."""
    copy = bytearray(seal(speech(number, TOCS[frame_ms]), number))
    copy[16] ^= mask
    return bytes(copy)


@pytest.mark.parametrize(("frame_ms", "mask"), [(60, 0x04), (60, 0x40), (20, 0x04), (20, 0x20)])
@pytest.mark.parametrize("until", [1.0, 12.0])
def test_late_copies_with_another_first_byte_neither_get_the_answers_nor_deafen(
    frame_ms: int, mask: int, until: float
) -> None:
    """The device always writes the usual first byte, so who turns it is no rival that matters."""
    air, random, period = Air(frame_ms), Random(mask), frame_ms / 1000
    for number in range(1, round(12 / period)):
        now = number * period
        air.send([number], now)
        guesses(air, random, 1, number, HOME, now + 0.001)
        if now < until:
            air.take(turned(number, frame_ms, mask), STRANGER, now + 0.01)
    assert air.homes == [None, HOME]
    assert len(set(air.numbers)) > 0.98 * 12 / period
    assert deafness(air, set(air.numbers), period) <= 0.6


@pytest.mark.parametrize(("frame_ms", "mask"), [(60, 0x04), (20, 0x04), (20, 0x20)])
@pytest.mark.parametrize("noise_rate", [0, 1, 3])
def test_late_copies_with_another_first_byte_in_a_former_name_do_not_deafen(
    frame_ms: int, mask: int, noise_rate: int
) -> None:
    air, random, period = Air(frame_ms), Random(mask), frame_ms / 1000
    now = air.stream_on(range(1, 40), 0.0)
    for number in range(40, 40 + round(10 / period)):
        air.send([number], now, AWAY)
        guesses(air, random, noise_rate, number, AWAY, now + 0.001)
        if number < 40 + 1 / period:
            air.take(turned(number, frame_ms, mask), HOME, now + 0.01)
        now += period
    assert air.homes == [None, HOME, AWAY]
    assert len(set(range(40, number)) - set(air.numbers)) < 0.02 * 10 / period


@pytest.mark.parametrize("sample_rate", [16_000, 24_000])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("talk", [3, 7])
@pytest.mark.parametrize("rate", [60, 150, 300])
def test_late_copies_of_short_utterances_do_not_get_the_answers(
    sample_rate: int, moved: bool, talk: int, rate: int
) -> None:
    """Numbers of earlier utterances still count: a chain goes over pauses of up to a second."""
    air, random, number, frame = Air(60, sample_rate), Random(rate + talk), 0, 0.06
    if moved:
        air.stream_on(range(1, 34), 0.0)
        number = 33
    home = AWAY if moved else HOME
    for tick in range(150):
        now = (number and 2.0) + tick * frame
        if tick % 16 < talk:
            number += 1
            air.send([number], now, home)
            if random.random() < 0.7:
                air.send([number], now + 0.03, STRANGER)
        for _ in range(int((tick + 1) * rate * frame) - int(tick * rate * frame)):
            air.take(noise(random, number + random.randint(1, 3)), home, now + 0.04)
    assert STRANGER not in air.homes


def test_many_changed_copies_of_a_packet_are_not_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = []

    def counting(*arguments: Any) -> Any:
        followed.append(1)
        return follow(*arguments)

    monkeypatch.setattr(proof, "follow", counting)
    air, random = Air(60, 24_000), Random(7)
    air.stream_on(range(1, 30), 0.0)
    for number in range(32, 60):
        for _ in range(30):
            air.take(changed_copy(random, number, air.toc), HOME, 3.0 + number * 0.06)
    assert len(followed) <= 28 * 16 * 2 * 3 * proof.MOST_FOLLOWED


@pytest.mark.parametrize("frame_ms", [20, 60])
def test_a_flood_from_elsewhere_does_not_keep_a_device_from_moving(frame_ms: int) -> None:
    """Where only the length counts, a part of the guesses looks like audio that came before the device's."""
    air, random, period = Air(frame_ms, 24_000), Random(frame_ms), frame_ms / 1000
    now = air.stream_on(range(1, 60), 0.0)
    for number in range(60, 300):
        for _ in range(round(400 * period)):
            air.take(noise(random, number + random.randint(0, 2)), STRANGER, now)
        air.send([number], now + 0.001, AWAY)
        now += period
    assert air.homes == [None, HOME, AWAY]


def test_packets_from_before_a_move_do_not_undo_it() -> None:
    air, now = Air(), 0.0
    now = air.stream_on(range(1, 30), now)
    seen = [seal(speech(number), number) for number in range(20, 30)]
    for number in range(30, 200):
        air.send([number], now, AWAY)
        for datagram in seen:
            air.take(datagram, HOME, now + 0.01)
        now += FRAME
    assert air.homes == [None, HOME, AWAY]


def test_a_move_is_undone_once_a_minute_at_most() -> None:
    """Copies in the former name bring the downlink back; it does not go to and fro."""
    air, now = Air(), 0.0
    now = air.stream_on(range(1, 30), now)
    for number in range(30, 300):
        air.send([number], now, AWAY)
        if number % 20 < 6:
            air.send([number], now + 0.01, HOME)
        now += FRAME
    assert air.homes == [None, HOME, AWAY, HOME, AWAY]


def test_guesses_in_a_former_name_undo_no_move_where_only_the_length_counts() -> None:
    air, random, now = Air(20, 24_000), Random(4), 0.0
    now = air.stream_on(range(1, 60), now)
    for number in range(60, 300):
        air.send([number], now, AWAY)
        for _ in range(10):
            air.take(noise(random, number), HOME, now + 0.001)
        now += 0.02
    assert air.homes == [None, HOME, AWAY]


@pytest.mark.parametrize("begun", [0, 50])
def test_first_copies_of_each_packet_from_fresh_ports_make_nobody_deaf(begun: int) -> None:
    """At the beginning of a session, and when the device's port changes."""
    air, ports = Air(), iter(PORTS)
    air.stream_on(range(1, begun + 1), 0.0)
    for number in range(begun + 1, begun + 200):
        now = (number - 1) * FRAME
        for _ in range(16):
            air.send([number], now, next(ports))
        air.send([number], now + 0.001, AWAY)
    assert air.homes[-1] == AWAY
    assert deafness(air, range(begun + 1, begun + 200)) < 6 * FRAME


def outlast(rate: int, frame_ms: int, begun: int, send_copies: Callable[[Air, int, float], None]) -> None:
    """Let copies follow each of 60 packets, at the beginning of a session or from a change of the port on.

    The device gets the answers, and all its packets are heard in time.

    Args:
        rate: Of the device's audio, in Hz.
        frame_ms: Milliseconds a packet.
        begun: Packets before; 0 for the beginning of a session.
        send_copies: Sends copies: to where, after which packet counted from 1, when.
    """
    air, device, period = Air(frame_ms, rate), AWAY if begun else HOME, frame_ms / 1000
    air.stream_on(range(1, begun + 1), 0.0)
    for count in range(1, 61):
        now = (begun + count - 1) * period
        air.send([begun + count], now, device)
        send_copies(air, count, now + 0.002)
    assert set(air.homes) <= {None, HOME, device} and air.homes[-1] == device
    assert deafness(air, range(begun + 1, begun + 61), period) < 0.5


@pytest.mark.parametrize(("rate", "frame_ms"), [(16_000, 60), (24_000, 60), (24_000, 20)])
@pytest.mark.parametrize("begun", [0, 50])
@pytest.mark.parametrize(("copies", "flooded"), [(130, 5), (150, 40)])
def test_a_flood_of_late_copies_from_fresh_ports_does_not_crowd_out_the_devices_packets(
    rate: int, frame_ms: int, begun: int, copies: int, flooded: int
) -> None:
    ports = iter(PORTS)

    def send_copies(air: Air, count: int, now: float) -> None:
        for _ in range(copies if count <= flooded else 0):
            air.send([begun + count], now, next(ports))
        if count > 1:
            air.send(range(begun + count - (count == 2), begun + count + 1), now + 0.001, STRANGER)

    outlast(rate, frame_ms, begun, send_copies)


@pytest.mark.parametrize(("rate", "frame_ms"), [(16_000, 60), (24_000, 60), (24_000, 40), (24_000, 20)])
@pytest.mark.parametrize("begun", [0, 50])
@pytest.mark.parametrize(("every", "until"), [(2, 6), (3, 60)])
def test_changed_copies_that_follow_a_copy_do_not_crowd_out_the_devices_packets(
    rate: int, frame_ms: int, begun: int, every: int, until: int
) -> None:
    """Each of ten ports sends a late copy of one packet, and changed copies of the next: none of them is alone."""

    def send_copies(air: Air, count: int, now: float) -> None:
        number = begun + count
        copy = seal(speech(number, air.toc), number)
        for port in PORTS[:10] if count % every == 0 and count <= until else []:
            air.send([number - 1], now, port)
            for change in range(1, 16):
                air.take(copy[:-1] + bytes((copy[-1] ^ change,)), port, now)
        if count >= 6:
            air.send(range(number - 5 if count == 6 else number, number + 1), now + 0.001, STRANGER)

    outlast(rate, frame_ms, begun, send_copies)


@pytest.mark.parametrize("begun", [0, 50])
@pytest.mark.parametrize("lost", [{1}, {2}, {3}, {4}, {1, 2}, {2, 4}])
def test_late_copies_take_nothing_though_they_are_first_where_a_packet_of_the_device_is_lost(
    begun: int, lost: set[int]
) -> None:
    """At the beginning of a session, and when the device's port changes."""
    air, device = Air(), AWAY if begun else HOME
    air.stream_on(range(1, begun + 1), 0.0)
    for number in range(1, 60):
        now = (begun + number - 1) * FRAME
        if number not in lost:
            air.send([begun + number], now, device)
        air.send([begun + number], now + 0.03, STRANGER)
    assert STRANGER not in air.homes and air.homes[-1] == device


@pytest.mark.parametrize(("begun", "pause", "device"), [(0, 0.0, HOME), (30, 3.0, HOME), (30, FRAME, AWAY)])
@pytest.mark.parametrize("rate", [600, 1200])
@pytest.mark.parametrize("behind", [9, 18, 30])
def test_copies_that_come_when_the_devices_own_packets_are_crowded_out_do_not_get_the_answers(
    begun: int, pause: float, device: Address, rate: int, behind: int
) -> None:
    """A flood in the device's name, changed copies among it, keeps its packets from a proof and fills their places."""
    air, random = Air(), Random(rate)
    begin = air.stream_on(range(1, begun + 1), 0.0) + pause
    for number in range(begun + 1, begun + 71):
        now = begin + (number - begun - 1) * FRAME
        air.send([number], now, device)
        copy = seal(speech(number), number)
        for change in range(1, 16):
            air.take(copy[:-1] + bytes((copy[-1] ^ change,)), device, now + 0.001)
        guesses(air, random, round(rate * FRAME) - 15, number, device, now + 0.002)
        if number - behind > begun:
            air.send([number - behind], now + 0.003, STRANGER)
    assert STRANGER not in air.homes and air.homes[-1] == device


@pytest.mark.parametrize("begun", [0, 30])
@pytest.mark.parametrize("copies", [0, 1])
def test_guesses_with_numbers_far_ahead_do_not_crowd_out_what_shows_late_copies(begun: int, copies: int) -> None:
    """At 2,000 packets a second, no number has more candidates than are kept of each."""
    air, random, behind = Air(), Random(begun + copies), 50
    begin = air.stream_on(range(1, begun + 1), 0.0) + 3
    for number in range(begun + 1, begun + 91):
        now = begin + (number - begun - 1) * FRAME
        air.send([number], now)
        copy = seal(speech(number), number)
        for change in range(1, 1 + copies):
            air.take(copy[:-1] + bytes((copy[-1] ^ change,)), HOME, now + 0.001)
        for _ in range(round(2000 * FRAME) - 2 - copies):
            air.take(noise(random, number + random.randint(1, 60)), HOME, now + 0.002)
        if number - behind > begun:
            air.send([number - behind], now + 0.003, STRANGER)
    assert STRANGER not in air.homes


@pytest.mark.parametrize("begun", [0, 30])
@pytest.mark.parametrize("seed", range(5))
def test_changed_copies_that_come_first_in_the_devices_name_do_not_lend_the_answers_to_late_copies(
    begun: int, seed: int
) -> None:
    """With several first bytes they hide what the device sends; that has to show the late copies all the same."""
    air, random = Air(), Random(seed)
    now = air.stream_on(range(1, begun + 1), 0.0) + 3
    for number in range(begun + 1, begun + 101):
        if begun and number % 10 == 0:
            now += 3
        for mask in random.choices((0x04, 0x40, 0x44), k=3) if begun or number <= 4 else []:
            copy = turned(number, 60, mask)
            air.take(copy[:-1] + bytes((copy[-1] ^ random.randrange(1, 256),)), HOME, now)
        air.send([number], now + 0.001)
        air.send([number], now + 0.05, STRANGER)
        now += FRAME
    assert air.homes == [None, HOME]


@pytest.mark.parametrize("frame_ms", [20, 60])
@pytest.mark.parametrize("begun", [0, 30])
@pytest.mark.parametrize(("copies", "until"), [(16, 4), (16, 60), (29, 60)])
def test_as_many_changed_copies_as_a_number_may_have_do_not_lend_the_answers_to_late_copies(
    frame_ms: int, begun: int, copies: int, until: int
) -> None:
    """They come first in the device's name, with another first byte: the device's packet has to displace one."""
    air, random, period = Air(frame_ms), Random(copies), frame_ms / 1000
    now = air.stream_on(range(1, begun + 1), 0.0) + 3
    for number in range(begun + 1, begun + 61):
        for _ in range(copies if number <= begun + until else 0):
            air.take(turned(number, frame_ms, 0x04)[:-3] + random.randbytes(3), HOME, now)
        air.send([number], now + 0.001)
        air.send([number], now + 0.015, STRANGER)
        now += period
    assert air.homes == [None, HOME]


@pytest.mark.parametrize("taps", [False, True])
def test_copies_that_come_first_do_not_deafen_after_another_first_byte_was_heard(taps: bool) -> None:
    """Four packets in the device's name set the first byte: copies of what it speaks, or of taps that were not heard.

    The device's own packets are then no longer usual, and their chain looks like one of copies.
    """
    air = Air()
    now = air.stream_on(range(1, 30), 0.0)
    if taps:
        now = air.stream_on(range(33, 36), air.stream_on(range(30, 33), now + 3) + 2) + 2
    for number in range(30, 36):
        air.take(turned(number, 60, 0x04), HOME, now)
        if not taps:
            air.send([number], now + 0.001)
        now += FRAME
    for number in range(36, 100):
        air.send([number], now, STRANGER)
        air.send([number], now + 0.001)
        now += FRAME
    assert air.homes == [None, HOME]
    assert set(range(36, 100)) <= set(air.numbers)


def test_taps_that_were_too_short_to_be_heard_prove_nothing_later() -> None:
    air = Air()
    air.stream_on(range(1, 30), 0.0)
    for first, now in ((30, 10.0), (33, 12.0)):
        air.stream_on(range(first, first + 3), now)
    for number in range(30, 36):
        air.send([number], 20.0 + number * FRAME, STRANGER)
    assert STRANGER not in air.homes


def test_taps_that_were_too_short_to_be_heard_are_not_heard_with_what_follows() -> None:
    """They are kept, because they show later copies."""
    air = Air()
    air.stream_on(range(1, 30), 0.0)
    air.stream_on(range(30, 33), 10.0)
    air.stream_on(range(33, 50), 12.0)
    assert air.numbers == [*range(1, 30), *range(33, 50)]


def test_packets_that_were_kept_back_are_not_heard_minutes_later_in_the_devices_name() -> None:
    air = Air()
    air.stream_on([number for number in range(1, 500) if not 100 <= number < 140], 0.0)
    before = len(air.heard)
    air.stream_on(range(100, 140), 330.0)
    assert len(air.heard) == before


@pytest.mark.parametrize(("rate", "frame_ms"), [(16_000, 60), (24_000, 60), (24_000, 20)])
def test_a_flood_from_elsewhere_costs_nothing_after_a_pause(rate: int, frame_ms: int) -> None:
    air, random, period = Air(frame_ms, rate), Random(rate + frame_ms), frame_ms / 1000
    number = 0
    for tick in range(round(12 / period)):
        now = tick * period
        if not 3 <= now <= 5:
            number += 1
            air.send([number], now)
        for _ in range(round(2500 * period)):
            air.take(noise(random, number + random.randint(1, 100)), random.choice(PORTS), now)
    assert air.homes == [None, HOME]
    assert set(air.numbers) == set(range(1, number + 1))


def test_flipped_copies_at_the_beginning_do_not_loosen_what_counts_as_audio() -> None:
    air, random, now = Air(), Random(3), 0.0
    for number in range(1, 13):
        air.send([number], now)
        guesses(air, random, 1, number, HOME, now)
        air.send([number], now + 0.01, toc=0x18)
        now += FRAME
    for number in range(13, 600):
        air.send([number], now)
        guesses(air, random, 30, number, HOME, now)
        now += FRAME
    assert air.homes == [None, HOME]
    assert len(set(air.numbers)) > 600 * 0.84

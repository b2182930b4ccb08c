"""Ten minutes of forging without the key, in virtual time over the classes that the edge runs.

The same against a real edge over UDP, for a shorter time: test_audio_siege.py.
"""

from random import Random

import pytest

from fleet.wire.messages import AudioFormat
from tests.support.audio_air import AWAY, FORGERIES, HOME, STRANGER, Air, Outcome, besiege, noise, seal
from tests.support.every import for_every

SHORT = 30.0
"""Seconds of each case by default: the microphone is shut once, and opened again."""
SECONDS = [pytest.param(SHORT, id="half a minute"), pytest.param(600.0, id="ten minutes", marks=pytest.mark.slow)]
GUESS = 30 / 256 + 0.01
"""500 packets a second are 30 for each of the device's, and one guess in 256 is right; one in a hundred for chance."""


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("pauses", [False, True], ids=["all the time", "with pauses"])
def test_from_another_address_nothing_is_lost_and_the_downlink_stays(
    name: str, seconds: float, *, pauses: bool
) -> None:
    outcome = besiege(FORGERIES[name], STRANGER, seconds, pauses=pauses)
    assert outcome.homes == [None, HOME]
    assert outcome.lost == 0
    assert outcome.deaf < 0.2


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("pauses", [False, True], ids=["all the time", "with pauses"])
def test_from_the_devices_own_address_one_guess_in_256_costs_a_packet(
    name: str, seconds: float, *, pauses: bool
) -> None:
    outcome = besiege(FORGERIES[name], HOME, seconds, pauses=pauses)
    assert outcome.homes == [None, HOME]
    # Half a minute is too short for chance to even out.
    assert outcome.lost <= GUESS + (0.04 if seconds == SHORT else 0.0)
    assert outcome.deaf <= 1.0


def test_a_device_is_never_moved_by_forging_at_ten_times_the_rate() -> None:
    outcome: Outcome = besiege(FORGERIES["next few numbers"], STRANGER, SHORT / 3, rate=5000.0)
    assert outcome.homes == [None, HOME]
    assert outcome.lost == 0


@pytest.mark.parametrize("uplink", [AudioFormat(24_000, 20), AudioFormat(8_000, 60), AudioFormat(16_000, 20)])
def test_from_another_address_nothing_is_lost_whatever_the_device_announced(uplink: AudioFormat) -> None:
    outcome = besiege(FORGERIES["all of it"], STRANGER, SHORT, uplink=uplink, pauses=True)
    assert outcome.homes == [None, HOME]
    assert outcome.lost == 0


def test_who_is_first_with_copies_from_the_beginning_is_taken_for_the_device_until_they_stop() -> None:
    """What cannot be prevented: nothing tells which of both is the copy."""
    air, now = Air(), 0.0
    for number in range(1, 30):
        air.send([number], now, STRANGER)
        air.send([number], now + 0.01)
        now += 0.06
    air.stream_on(range(30, 40), now)
    assert air.homes == [None, STRANGER, HOME]
    assert air.numbers == list(range(1, 40))


@for_every("seed", range(30))
def test_a_new_port_is_followed_within_a_second_while_somebody_forges_from_the_old_one(seed: int) -> None:
    air, random, now = Air(), Random(seed), 0.0
    for number in range(1, 60):
        now = air.stream_on([number], now, HOME if number < 30 else AWAY)
        for _ in range(30):
            air.take(noise(random, number + random.randint(1, 3)), HOME, now)
    assert air.homes == [None, HOME, AWAY]
    moved = next(at for at, number in air.heard if number >= 30)
    assert moved - 29 * 0.06 <= 1.0


def test_who_races_the_device_from_its_address_can_change_its_speech() -> None:
    """What cannot be prevented: under the true header a payload with bits flipped keeps its first byte."""
    air = Air()
    now = air.stream_on(range(1, 11), 0.0)
    for number in range(11, 31):
        fresh = seal(b"\x58" + b"packet" + number.to_bytes(4, "big") + bytes(20), number)
        changed = fresh[:20] + bytes((fresh[20] ^ 1,)) + fresh[21:]
        air.take(changed, HOME, now)
        air.take(fresh, HOME, now)
        now += 0.06
    assert air.numbers == list(range(1, 11)), "all that came later was changed"
    assert air.drops["replay"] == 20


def test_a_payload_that_was_seen_is_random_under_any_other_header() -> None:
    air, random = Air(), Random(1)
    air.stream_on(range(1, 11), 0.0)
    seen = seal(b"\x58" + bytes(30), 10)
    good = sum(
        air.stream._channel.open(seen[:12] + number.to_bytes(4, "big") + seen[16:])[0] == 0x58
        for number in random.sample(range(11, 2**31), 20_000)
    )
    assert good < 2 * 20_000 / 256

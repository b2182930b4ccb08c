"""Sweeps in the device's name: all first bytes for one number after another, so one packet for each number is right.

In virtual time over the edge's real classes. The payloads have one byte, so nothing but the first byte counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from fleet.wire import toc
from tests.support.audio_air import AWAY, HOME, STRANGER, Address, Air, header, noise, seal, speech
from tests.support.every import for_every

Packet = tuple[float, int, Address, bytes]
"""When, order among those of one time, from where, and the datagram."""
GOOD = 0.117 + 0.02
"""One packet in nine is replaced at 500 a second, and 2 % for chance."""
ALL = range(256)


@cache
def chosen(frame_ms: int) -> Sequence[int]:
    """Return a few first bytes of which one has the right duration, whatever the keystream."""
    good = {first for first in ALL if toc.duration_ms(bytes([first])) == frame_ms}
    left, found = set(ALL), list[int]()
    while left:
        found.append(max(ALL, key=lambda first: sum(first ^ one in left for one in good)))
        left -= {found[-1] ^ one for one in good}
    return found


def sweep(
    began: float, seconds: float, numbers: list[int], source: Address = HOME, firsts: Sequence[int] = ALL
) -> list[Packet]:
    """Return packets that try first bytes for each of the numbers, in so many seconds."""
    tries = [(number, first) for number in numbers for first in firsts]
    return [
        (began + seconds * at / len(tries), 1, source, header(1, number) + bytes([first]))
        for at, (number, first) in enumerate(tries)
    ]


@dataclass
class Device:
    """A device that speaks for a while, pauses, and goes on."""

    frame_ms: int = 60
    sample_rate: int = 16_000
    loss: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        self.sent: dict[int, float] = {}
        """When each packet came; -1 if it was lost on its way."""
        self.packets: list[Packet] = []
        self.now = 0.0
        self._random = Random(1)

    def speak(self, seconds: float, address: Address = HOME) -> None:
        air = Air(self.frame_ms)
        for _ in range(round(seconds * 1000 / self.frame_ms)):
            number = len(self.sent) + 1
            self.sent[number] = at = self.now + self._random.random() * self.jitter
            if self._random.random() >= self.loss:
                self.packets.append((at, 0, address, seal(speech(number, air.toc), number)))
            else:
                self.sent[number] = -1.0
            self.now += self.frame_ms / 1000

    def against(self, attack: list[Packet]) -> tuple[float, float, Air]:
        """Return which part of its packets was lost, for how many seconds it was not heard, and the air."""
        air = Air(self.frame_ms, self.sample_rate)
        for now, _, address, datagram in sorted([*self.packets, *attack], key=lambda packet: packet[:2]):
            air.take(datagram, address, now)
        heard = {number: when for when, number in reversed(air.heard)}
        came = {number: at for number, at in self.sent.items() if at >= 0 and at < self.now - 1.0}
        missing, deaf = 0, 0.0
        for number, at in came.items():
            missing = 0 if number in heard else missing + 1
            deaf = max(deaf, missing * self.frame_ms / 1000, heard.get(number, at) - at)
        return 1 - len(came.keys() & heard.keys()) / len(came), deaf, air


@for_every("numbers, seconds, step", [(10, 0.1, 3), (10, 0.1, 1), (8, 0.5, 2), (12, 0.7, 1), (10, 0.5, 6)])
def test_a_burst_over_the_numbers_ahead_costs_no_more_than_its_guesses(numbers: int, seconds: float, step: int) -> None:
    device = Device()
    device.speak(12)
    every = numbers * 256 / 500
    attack: list[Packet] = []
    for burst in range(int(10 / every)):
        began = 1.0 + burst * every
        next_number = int(began / 0.06) + 2
        ahead = list(range(next_number + step - 1, next_number + step - 1 + numbers * step, step))
        attack += sweep(began, seconds, ahead)
    lost, deaf, air = device.against(attack)
    assert (lost <= GOOD, deaf <= 1.0, air.homes) == (True, True, [None, HOME]), (lost, deaf)


@for_every("step, rate", [(3, 1500), (1, 1500), (1, 5000)])
def test_sweeps_while_the_microphone_is_off_cost_nothing_more_later(step: int, rate: int) -> None:
    """Guesses alone do not keep a stream live, and do not decide which numbers a device has reached."""
    device, attack = Device(), list[Packet]()
    for _ in range(3):
        device.speak(2)
        ahead = list(range(len(device.sent) + 1, len(device.sent) + 1 + 11 * step, step))
        attack += sweep(device.now, 11 * 256 / rate, ahead)
        device.now += 4
    lost, deaf, air = device.against(attack)
    assert (lost <= GOOD, deaf <= 1.0, air.homes) == (True, True, [None, HOME]), (lost, deaf)


def test_one_long_burst_in_a_pause_does_not_deafen_for_minutes() -> None:
    device = Device()
    device.speak(40)
    attack = sweep(device.now, 6.5, [len(device.sent) + 3 * at for at in range(1, 80)])
    device.now += 30
    device.speak(10)
    lost, deaf, _ = device.against(attack)
    assert (lost <= 0.02, deaf <= 1.0) == (True, True), (lost, deaf)


@for_every("frame_ms, numbers", [(20, 25), (40, 25), (60, 12)])
def test_at_other_rates_a_burst_costs_no_more_than_its_guesses(frame_ms: int, numbers: int) -> None:
    device = Device(frame_ms, 24_000)
    device.speak(12)
    attack: list[Packet] = []
    for began in (2.0, 7.0):
        next_number = round(began * 1000 / frame_ms) + 1
        attack += sweep(began, 0.5, [next_number + 3 * at for at in range(1, numbers)], firsts=chosen(frame_ms))
    lost, deaf, _ = device.against(attack)
    assert (lost <= 0.1, deaf <= 1.0) == (True, True), (lost, deaf)


def test_guesses_that_leap_ahead_cost_no_more_than_their_numbers() -> None:
    """The device's packets behind them are used at once: too few wait for a proof before the device has caught up."""
    device, attack = Device(), list[Packet]()
    device.speak(60)
    for burst in range(22):
        began = 1.9 + burst * 2.56
        newest = int(began / 0.06) + 1
        attack += sweep(began, 0.6, [newest + 3 * at for at in range(1, 6)])
    lost, deaf, _ = device.against(attack)
    assert (lost <= GOOD, deaf <= 0.4) == (True, True), (lost, deaf)


@for_every("frame_ms, rate", [(60, 500), (40, 700), (20, 1000)])
def test_no_silence_gets_into_speech_whose_stream_was_refuted(frame_ms: int, rate: int) -> None:
    """The device's packets wait for a proof then. Silence between them would end the utterance."""
    device, random = Device(frame_ms), Random(rate)
    device.speak(12)
    attack: list[Packet] = []
    for began in range(2, 11, 2):
        ahead = round(began * 1000 / frame_ms) + 100
        attack += [(began + at * 1e-5, 1, HOME, noise(random, ahead, 40)) for at in range(1000)]
        attack += [(began + 0.02 + at / rate, 1, HOME, noise(random, ahead, at % 4)) for at in range(rate)]
    lost, deaf, air = device.against(attack)
    assert (lost, deaf > 3 * frame_ms / 1000, air.silences) == (0.0, True, 0), (lost, deaf, air.silences)


def test_a_new_port_is_followed_within_a_second_during_a_sweep() -> None:
    device = Device()
    device.speak(3)
    device.speak(3, AWAY)
    numbers = list(range(50, 54))
    _, deaf, air = device.against([*sweep(2.9, 2.0, numbers), *sweep(2.9, 2.0, numbers, AWAY)])
    assert air.homes == [None, HOME, AWAY]
    assert deaf <= 1.2


@for_every("loss, jitter", [(0.0, 0.11), (0.1, 0.11), (0.1, 0.02)])
def test_a_poor_network_and_a_pause_cost_no_packet_that_came(loss: float, jitter: float) -> None:
    """Packets overtake each other."""
    device = Device(loss=loss, jitter=jitter)
    device.speak(6)
    device.now += 30
    device.speak(6)
    lost, _, air = device.against([])
    assert (lost <= 0.01, air.homes) == (True, [None, HOME]), lost


@for_every("frame_ms, rate", [(20, 24_000), (40, 24_000), (60, 24_000), (60, 8_000)])
def test_chosen_first_bytes_from_elsewhere_do_not_hold_up_the_first_proof(frame_ms: int, rate: int) -> None:
    """One byte long, unlike the device's packets: no copies of them, so these are none of the stranger's."""
    device, period, attack = Device(frame_ms, rate), frame_ms / 1000, list[Packet]()
    device.speak(4)
    for number in range(2, len(device.sent) + 1):
        attack += sweep((number - 1.9) * period, 0.8 * period, [number], STRANGER, chosen(frame_ms))
    lost, deaf, air = device.against(attack)
    assert (lost, deaf <= 0.6, air.homes) == (0.0, True, [None, HOME]), (lost, deaf)

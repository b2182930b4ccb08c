import pytest

from fleet.sim.channel import Channel, ChannelEvents
from fleet.sim.journal import Journal
from fleet.sim.profile import PROFILES
from fleet.sim.pulse import Pulse
from fleet.wire import packet

KEY = bytes(range(16))


class Bench:
    """A channel that was welcomed, at a clock that stands still."""

    def __init__(self) -> None:
        self.now = 100.0
        self.heard: list[bytes] = []
        self.pulse = Pulse(lambda: self.now)
        self.journal = Journal(lambda: self.now)
        events = ChannelEvents(self.heard.append, lambda _: None, lambda: None)
        self.channel = Channel(PROFILES["P1"], self.journal, self.pulse, events, lambda work, _: work.close())
        self.welcome(KEY, "s1")

    def welcome(self, key: bytes, session: str) -> None:
        self.sealer = packet.Channel(key, 7)
        udp = {"server": "127.0.0.1", "port": 9, "key": key.hex(), "nonce": packet.nonce(7).hex()}
        audio = {"sample_rate": 24_000, "frame_duration": 60}
        self.channel.receive_hello(
            {"type": "hello", "transport": "udp", "session_id": session, "udp": udp, "audio_params": audio}
        )

    def receive(self, count: int, size: int = 40) -> None:
        for number in range(1, count + 1):
            self.channel._receive(self.sealer.seal(bytes(size), number * 60, number))

    @property
    def broken(self) -> dict[str, int]:
        return self.journal.audit.counts


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_of_ten_datagrams_at_once_six_arrive(bench: Bench) -> None:
    bench.receive(10)
    assert len(bench.heard) == 6
    assert bench.broken == {"mailbox-overflow": 4}
    assert bench.journal.counters["downlink_dropped_mailbox"] == 4


def test_a_burst_is_not_the_servers_fault_when_this_process_was_held_up(bench: Bench) -> None:
    bench.pulse.record(0.5)
    bench.receive(10)
    assert len(bench.heard) == 10
    assert bench.broken == {}


@pytest.mark.parametrize("size", [7, 1185])
def test_datagrams_that_not_every_path_or_firmware_takes_break_a_rule(bench: Bench, size: int) -> None:
    bench.receive(1, size)
    assert bench.broken == {"datagram-size": 1}


def test_a_new_hello_begins_a_new_count(bench: Bench) -> None:
    bench.receive(3)
    bench.now += 1.0
    bench.welcome(bytes(16), "s2")
    bench.receive(3)
    assert bench.broken == {}
    assert len(bench.heard) == 6


def test_a_session_id_used_again_breaks_a_rule(bench: Bench) -> None:
    bench.welcome(bytes(16), "s1")
    assert bench.broken == {"hello-session-reuse": 1}

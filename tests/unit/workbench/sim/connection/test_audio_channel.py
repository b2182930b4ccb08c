import random
from dataclasses import replace

import pytest

from fleet.wire import packet
from fleet.workbench.sim.connection.audio_channel import AudioChannel, ChannelEvents
from fleet.workbench.sim.network.conditions import NetworkConditions
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import PROFILES, Profile
from fleet.workbench.sim.profiles.timing import Timing
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.loop_lag import LoopLag

KEY = bytes(range(16))


class Bench:
    """A channel that was welcomed, at a clock that stands still."""

    def __init__(self, profile: Profile = PROFILES["P1"]) -> None:
        self.now = 100.0
        self.heard: list[bytes] = []
        self.loop_lag = LoopLag(lambda: self.now)
        self.journal = Journal(lambda: self.now)
        events = ChannelEvents(
            lambda payload, _: self.heard.append(payload), lambda: None, lambda _: None, lambda: None
        )
        network = NetworkConditions.of(profile, Faults(), random.Random(1))
        self.channel = AudioChannel(profile, self.journal, self.loop_lag, network, events, lambda work, _: work.close())
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
            self.take(self.sealer.seal(bytes(size), number * 60, number))

    def take(self, datagram: bytes) -> None:
        if self.channel._downlink.arrive(datagram):
            self.channel._downlink.receive(datagram)

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
    bench.loop_lag.record(0.5)
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


def test_keystream_that_is_used_twice_breaks_a_rule(bench: Bench) -> None:
    bench.take(bench.sealer.seal(bytes(40), 60, 1))
    assert bench.broken == {}
    bench.take(bench.sealer.seal(bytes(40), 60, 2))
    assert bench.broken == {"keystream": 1}


def test_a_number_that_comes_again_breaks_a_rule_also_where_firmware_accepts_it() -> None:
    bench = Bench(PROFILES["P6"])
    bench.take(bench.sealer.seal(bytes(40), 60, 1))
    bench.take(bench.sealer.seal(bytes(40), 120, 1))
    assert bench.broken == {"sequence": 1}
    assert len(bench.heard) == 2


def test_firmware_2_2_6_drops_what_is_below_24_bytes() -> None:
    bench = Bench(PROFILES["P6"])
    bench.receive(1, 7)
    assert bench.heard == []
    assert bench.journal.counters["downlink_refused_short"] == 1


def test_py_xiaozhi_plays_what_firmware_refuses() -> None:
    bench = Bench(PROFILES["P8"])
    bench.receive(2)
    bench.receive(1)
    assert len(bench.heard) == 3
    assert bench.broken == {"sequence": 1}


def test_a_server_that_cancels_echo_must_stamp_its_packets() -> None:
    bench = Bench(PROFILES["P4"])
    bench.take(bench.sealer.seal(bytes(40), 0, 1))
    bench.take(bench.sealer.seal(bytes(40), 60, 2))
    assert bench.broken == {"echo-reference": 1}


def test_an_excused_breach_is_not_the_servers(bench: Bench) -> None:
    bench.journal.excuse(("mailbox-overflow",), 1.0)
    bench.receive(10)
    assert bench.broken == {}
    assert bench.journal.audit.excused == {"mailbox-overflow": 4}
    bench.now += 2.0
    bench.welcome(bytes(16), "s2")
    bench.receive(10)
    assert bench.broken == {"mailbox-overflow": 4}


class Quiet:
    """An MQTT connection into which messages vanish."""

    has_topic = True

    async def ready(self, seconds: float) -> bool:
        return True

    async def publish(self, text: str) -> bool:
        return True

    def conversation_over(self) -> None:
        pass


async def test_a_hello_that_comes_after_the_device_gave_up_is_told_and_opens_nothing() -> None:
    profile = replace(PROFILES["P1"], timing=Timing(hello=0.01))
    bench = Bench(profile)
    bench.channel.mqtt = Quiet()  # type: ignore[assignment]
    assert not await bench.channel.open()
    assert bench.broken == {"hello-missing": 1}
    bench.welcome(bytes(16), "s2")
    assert bench.broken == {"hello-missing": 1, "hello-late": 1}
    assert bench.channel.live == ""
    assert bench.channel.session == "s2"


@pytest.mark.parametrize(("stalled", "broken"), [(0.0, {"hello-slow": 1}), (4.0, {})])
async def test_a_hello_that_is_answered_late_is_told_unless_this_process_stood_still(
    stalled: float, broken: dict[str, int]
) -> None:
    bench = Bench()

    class Slow(Quiet):
        async def publish(self, text: str) -> bool:
            bench.now += 4.0
            bench.loop_lag.record(stalled)
            bench.welcome(bytes(16), "s2")
            return True

    bench.channel.mqtt = Slow()  # type: ignore[assignment]
    await bench.channel._ask(1.0)
    assert bench.broken == broken


async def test_without_a_topic_nothing_is_sent_and_nobody_notices() -> None:
    failures: list[None] = []
    bench = Bench()
    events = ChannelEvents(lambda *_: None, lambda: None, lambda _: None, lambda: failures.append(None))
    network = NetworkConditions.of(PROFILES["P1"], Faults(), random.Random(1))
    channel = AudioChannel(PROFILES["P1"], bench.journal, bench.loop_lag, network, events, lambda work, _: work.close())
    quiet = Quiet()
    quiet.has_topic = False
    channel.mqtt = quiet  # type: ignore[assignment]
    assert not await channel.send("{}")
    assert failures == []

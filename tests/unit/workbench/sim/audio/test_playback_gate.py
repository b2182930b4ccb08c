"""Packets and times by hand: which losses and silences are found, and whom they are blamed on."""

import struct

import pytest

from fleet.adapters.speech.opus import Encoder
from fleet.workbench.sim.audio.gaps import GapAudit
from fleet.workbench.sim.audio.playback import Playback
from fleet.workbench.sim.audio.playback_gate import PlaybackGate
from fleet.workbench.sim.profiles.profile import PROFILES, Profile
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.loop_lag import LoopLag
from fleet.workbench.sim.records.turns import TurnLog
from fleet.workbench.sim.runtime.state import State, StateMachine

_ENCODER = Encoder(24_000, 60)
LOUD = _ENCODER.encode(struct.pack("<2h", 9000, -9000) * 720)


class Bench:
    """A device that speaks, at a clock that the test moves."""

    def __init__(self, profile: Profile = PROFILES["P1"], spread: float = 0.0) -> None:
        self.now = 10.0
        self.journal = Journal(lambda: self.now)
        self.loop_lag = LoopLag(lambda: self.now)
        self.machine = StateMachine(profile.mode)
        self.playback = Playback(self.journal, profile, self)
        self.gaps = GapAudit(profile, self.journal, self.loop_lag, spread)
        turns = TurnLog(lambda: None)
        self.gate = PlaybackGate(profile, self.journal, self.machine, self.playback, turns, self.gaps)

    def played(self, at: float, pcm: bytes, sample_rate: int) -> None:
        pass

    def sounded(self, timestamp: int) -> None:
        pass

    def drained(self, at: float) -> None:
        pass

    def speak(self) -> None:
        self.machine.state = State.SPEAKING
        self.gate.begin()
        self.gate.clear()

    def stop(self) -> None:
        self.machine.state = State.LISTENING
        self.gate.end()

    def take(self, count: int, period: float = 0.06) -> None:
        for _ in range(count):
            self.gate.take(LOUD)
            self.now += period

    @property
    def broken(self) -> dict[str, int]:
        return self.journal.audit.counts


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_steady_answer_breaks_nothing(bench: Bench) -> None:
    bench.speak()
    bench.take(100)
    bench.stop()
    assert bench.broken == {}


def test_the_packet_that_finds_the_queue_full_is_dropped_and_told(bench: Bench) -> None:
    bench.speak()
    bench.take(43, period=0.0)
    assert bench.broken == {"queue-overflow": 2}
    assert bench.journal.counters["downlink_dropped_full"] == 2
    assert bench.journal.counters["queue_deepest"] == 40


def test_silence_inside_a_sentence_is_an_underrun(bench: Bench) -> None:
    bench.speak()
    bench.take(3)
    bench.now += 0.2
    bench.take(3)
    bench.stop()
    assert bench.broken == {"underrun": 1}


def test_silence_while_this_process_stood_still_is_nobodys_fault(bench: Bench) -> None:
    bench.speak()
    bench.take(3)
    bench.now += 0.2
    bench.loop_lag.record(0.2)
    bench.take(3)
    bench.stop()
    assert bench.broken == {}


def test_silence_that_the_network_caused_is_not_the_servers_fault(bench: Bench) -> None:
    bench.speak()
    bench.take(3)
    for _ in range(3):
        bench.gate.miss()
        bench.now += 0.06
    bench.take(3)
    bench.stop()
    assert bench.broken == {}
    assert bench.journal.counters["underruns_of_the_network"] == 1


def test_the_network_is_blamed_for_no_more_than_it_kept(bench: Bench) -> None:
    bench.speak()
    bench.take(3)
    bench.gate.miss()
    bench.now += 0.2
    bench.take(3)
    bench.stop()
    assert bench.broken == {"underrun": 1}


def test_what_the_network_kept_excuses_one_silence_only(bench: Bench) -> None:
    bench.speak()
    for _ in range(2):
        bench.take(3)
        bench.gate.miss()
        bench.gate.miss()
        bench.now += 0.12
    bench.take(3)
    assert bench.broken == {}
    bench.now += 0.1
    bench.take(1)
    bench.stop()
    assert bench.broken == {"underrun": 1}


def test_loss_that_has_eaten_the_lead_is_heard_as_gaps_of_a_packet_each(bench: Bench) -> None:
    bench.speak()
    bench.take(4, period=0.0)
    bench.now += 0.06
    for number in range(30):
        if number % 5:
            bench.take(1)
        else:
            bench.gate.miss()
            bench.now += 0.06
    bench.stop()
    counters = bench.journal.counters
    assert (counters["gaps"], counters["gaps_ms"], counters["gap_longest_ms"]) == (3, 180, 60)
    assert [step.detail["ms"] for step in bench.journal.find("gap")] == [60, 60, 60]
    assert bench.broken == {}, "one packet at a time, and the network's doing"


def test_a_pause_between_two_sentences_is_no_gap(bench: Bench) -> None:
    bench.speak()
    bench.gate.sentence()
    bench.take(3)
    bench.now += 0.5
    bench.gate.sentence()
    bench.take(3)
    bench.stop()
    assert (bench.journal.counters["gaps"], bench.journal.counters["pauses"]) == (0, 1)


@pytest.mark.parametrize(("stalled", "broken"), [(0.0, {"pause": 1}), (2.0, {})])
def test_a_long_pause_between_two_sentences_is_told_unless_this_process_stood_still(
    bench: Bench, stalled: float, broken: dict[str, int]
) -> None:
    bench.speak()
    bench.take(3)
    bench.now += 2.5
    bench.loop_lag.record(stalled)
    bench.gate.sentence()
    bench.take(3)
    bench.stop()
    assert bench.broken == broken


def test_sound_before_the_queue_is_cleared_is_lost_and_told(bench: Bench) -> None:
    bench.machine.state = State.SPEAKING
    bench.gate.begin()
    bench.take(1)
    bench.gate.clear()
    assert bench.broken == {"audio-before-clear": 1}


def test_sound_outside_speaking_is_lost_and_told(bench: Bench) -> None:
    bench.machine.state = State.LISTENING
    bench.take(1)
    assert bench.broken == {"audio-outside-speaking": 1}


def test_a_network_that_shifts_packets_against_messages_excuses_what_comes_close() -> None:
    bench = Bench(PROFILES["P7"], spread=0.13)
    bench.machine.state = State.SPEAKING
    bench.gate.begin()
    bench.take(1)
    bench.gate.clear()
    bench.stop()
    bench.now += 0.1
    bench.take(1)
    assert bench.broken == {}


def test_sound_after_an_interruption_is_told(bench: Bench) -> None:
    bench.speak()
    bench.take(2)
    bench.gate.abort()
    bench.take(2)
    assert bench.broken == {}
    bench.now += 0.5
    bench.take(1)
    assert "audio-after-abort" in bench.broken


def test_what_comes_after_an_interruption_as_this_process_was_held_up_is_not_the_servers(bench: Bench) -> None:
    bench.speak()
    bench.take(2)
    bench.gate.abort()
    bench.now += 1.0
    bench.loop_lag.record(1.0)
    bench.take(2)
    bench.stop()
    bench.take(1)
    assert bench.broken == {}


def test_packets_must_be_as_long_as_the_hello_said(bench: Bench) -> None:
    bench.gate.frame_ms = 20
    bench.speak()
    bench.take(1)
    assert bench.broken == {"audio-format": 1}


def test_py_xiaozhi_lets_sound_through_while_it_listens() -> None:
    bench = Bench(PROFILES["P8"])
    bench.machine.state = State.LISTENING
    bench.machine.plays_while_listening = True
    bench.take(1)
    assert bench.broken == {}
    assert bench.playback.speaker.busy_until is not None

"""What a server that leaves a device alone is found out by."""

import random
from types import SimpleNamespace

import pytest

from fleet.workbench.sim.firmware.response_monitor import ResponseMonitor
from fleet.workbench.sim.network.conditions import NetworkConditions
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import PROFILES
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.turns import TurnLog
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.state import State, StateMachine
from fleet.workbench.sim.tools.board import Board


class Bench:
    def __init__(self) -> None:
        self.now = self.stalled = 0.0
        profile, chance = PROFILES["P1"], random.Random(1)
        self.journal = Journal(lambda: self.now)
        network = NetworkConditions.of(profile, Faults(), chance)
        context = DeviceContext(profile, self.journal, Board(), TurnLog(lambda: None), ChangeSignal(), network, chance)
        self.machine = StateMachine("auto")
        self.channel = SimpleNamespace(quiet=0.0)
        parts = SimpleNamespace(
            machine=self.machine,
            channel=self.channel,
            microphone=SimpleNamespace(running=True),
            playback=SimpleNamespace(is_idle=lambda: True, speaker=SimpleNamespace(busy_until=None)),
            gate=SimpleNamespace(judge_gaps=lambda: None),
            gaps=SimpleNamespace(spread=0.0, kept=0.0, held_up=lambda _: self.stalled),
        )
        self.parts = parts
        self.monitor = ResponseMonitor(context, parts)  # type: ignore[arg-type]

    async def after(self, seconds: float) -> dict[str, int]:
        self.now += seconds
        self.channel.quiet += seconds
        await self.monitor.look()
        return self.journal.audit.counts


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_device_that_is_left_speaking_is_told_once(bench: Bench) -> None:
    bench.machine.state = State.SPEAKING
    bench.monitor.speech_began()
    assert await bench.after(10) == {}
    assert await bench.after(10) == {"stuck-speaking": 1}
    assert await bench.after(10) == {"stuck-speaking": 1}


async def test_a_device_that_is_left_listening_is_told_once(bench: Bench) -> None:
    bench.machine.state = State.LISTENING
    assert await bench.after(119) == {}
    assert await bench.after(2) == {"stuck-listening": 1}
    assert await bench.after(60) == {"stuck-listening": 1}


async def test_a_sign_from_the_server_keeps_a_listening_device_content(bench: Bench) -> None:
    bench.machine.state = State.LISTENING
    for _ in range(5):
        assert await bench.after(100) == {}
        bench.channel.quiet = 0.0


async def test_an_idle_device_waits_for_nobody(bench: Bench) -> None:
    bench.machine.state = State.IDLE
    assert await bench.after(1000) == {}


async def test_an_interruption_without_stop_is_told(bench: Bench) -> None:
    bench.machine.state = State.SPEAKING
    bench.monitor.speech_began()
    bench.monitor.interrupted()
    assert await bench.after(0.5) == {}
    assert await bench.after(1.0) == {"abort-unanswered": 1}


async def test_a_stop_long_after_the_last_sound_is_told_but_for_what_the_network_kept(bench: Bench) -> None:
    bench.machine.state = State.SPEAKING
    bench.monitor.speech_began()
    bench.parts.playback.speaker.busy_until = 5.0
    bench.parts.gaps.kept = 0.6
    bench.now = 6.5
    bench.monitor.speech_ended(6.5)
    assert bench.journal.audit.counts == {}
    bench.monitor.speech_ended(6.7)
    assert bench.journal.audit.counts == {"stop-late": 1}


async def test_what_held_up_this_process_is_not_the_servers(bench: Bench) -> None:
    bench.machine.state = State.SPEAKING
    bench.monitor.speech_began()
    bench.parts.playback.speaker.busy_until = 5.0
    bench.stalled, bench.now = 2.0, 7.5
    bench.monitor.speech_ended(7.5)
    bench.monitor.interrupted()
    assert await bench.after(2.5) == {}
    bench.monitor.speech_ended(bench.now)
    bench.parts.playback.speaker.busy_until = None
    bench.monitor.speech_began()
    assert await bench.after(16) == {}
    bench.monitor.interrupted()
    assert await bench.after(3.5) == {"abort-unanswered": 1, "stuck-speaking": 1}

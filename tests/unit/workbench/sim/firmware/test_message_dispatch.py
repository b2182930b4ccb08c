"""Messages that a build cannot bear."""

import json
import random
from types import SimpleNamespace

from fleet.workbench.sim.firmware.message_dispatch import MessageDispatcher
from fleet.workbench.sim.network.conditions import NetworkConditions
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import PROFILES
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.turns import TurnLog
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.tools.board import Board


class Bench:
    def __init__(self, name: str) -> None:
        profile, chance = PROFILES[name], random.Random(1)
        self.journal = Journal(lambda: 0.0)
        network = NetworkConditions.of(profile, Faults(), chance)
        context = DeviceContext(profile, self.journal, Board(), TurnLog(lambda: None), ChangeSignal(), network, chance)
        self.crashes = 0
        self.scheduled: list[object] = []
        channel = SimpleNamespace(live="s", session="s", touch=lambda: None, receive_hello=lambda _: None)
        application = SimpleNamespace(start_speech=None, stop_speech=print, hang_up=print)
        device = SimpleNamespace(
            channel=channel,
            application=application,
            main_loop=SimpleNamespace(schedule=self.scheduled.append),
            crash=self.crash,
            restart=None,
        )
        self.inbox = MessageDispatcher(context, device)  # type: ignore[arg-type]

    def crash(self) -> None:
        self.crashes += 1

    def receive(self, message: object) -> dict[str, int]:
        self.inbox.receive(json.dumps(message).encode(), 20)
        return self.journal.audit.counts


def test_a_missing_member_is_told_on_every_build_and_crashes_the_old_one() -> None:
    for name in PROFILES:
        bench = Bench(name)
        broken = bench.receive({"type": "tts", "session_id": "s"})
        assert broken == ({"crash": 1} if name == "P6" else {"field-missing": 1})
        assert bench.crashes == (name == "P6")


def test_a_message_above_6_kb_is_lost_on_a_board_without_psram_only() -> None:
    message = {"type": "goodbye", "session_id": "s", "padding": "x" * 6200}
    small, large = Bench("P2"), Bench("P1")
    assert small.receive(message) == {"heap": 1}
    assert small.scheduled == []
    assert large.receive(message) == {}
    assert len(large.scheduled) == 1


def test_a_message_just_below_6_kb_arrives() -> None:
    bench = Bench("P2")
    assert bench.receive({"type": "goodbye", "session_id": "s", "padding": "x" * 6000}) == {}
    assert len(bench.scheduled) == 1


def test_a_goodbye_without_session_closes_old_builds_and_py_xiaozhi() -> None:
    for name in PROFILES:
        bench = Bench(name)
        bench.receive({"type": "goodbye"})
        assert len(bench.scheduled) == (name in ("P6", "P8"))

from itertools import product

import pytest

from fleet.workbench.sim.profiles.profile import Mode
from fleet.workbench.sim.runtime.state import State, StateMachine, after_speech_starts, after_speech_stops
from tests.support.every import for_every

ALLOWED = {
    ("starting", "idle"),
    ("idle", "connecting"),
    ("idle", "listening"),
    ("idle", "speaking"),
    ("connecting", "idle"),
    ("connecting", "listening"),
    ("listening", "speaking"),
    ("listening", "idle"),
    ("speaking", "listening"),
    ("speaking", "idle"),
    ("idle", "notifying"),
    ("notifying", "idle"),
}


@for_every("start, to", list(product(State, State)))
def test_only_the_transitions_of_the_contract_are_possible(start: State, to: State) -> None:
    machine = StateMachine("auto")
    machine.state = start
    assert machine.move(to) is ((start.value, to.value) in ALLOWED)
    assert machine.state is (to if (start.value, to.value) in ALLOWED else start)


@pytest.mark.parametrize(
    ("state", "following"),
    [
        (State.IDLE, State.SPEAKING),
        (State.LISTENING, State.SPEAKING),
        (State.SPEAKING, None),
        (State.CONNECTING, None),
    ],
)
def test_tts_start_leads_to_speaking_from_idle_and_listening(state: State, following: State | None) -> None:
    assert after_speech_starts(state) is following


@pytest.mark.parametrize(
    ("mode", "following"),
    [("auto", State.LISTENING), ("realtime", State.LISTENING), ("manual", State.IDLE)],
)
def test_tts_stop_leads_back_as_the_mode_says(mode: Mode, following: State) -> None:
    assert after_speech_stops(State.SPEAKING, mode) is following


@pytest.mark.parametrize("state", [State.IDLE, State.LISTENING, State.CONNECTING])
def test_tts_stop_is_ignored_unless_the_device_speaks(state: State) -> None:
    assert after_speech_stops(state, "auto") is None

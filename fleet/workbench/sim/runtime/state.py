"""The device's state machine: which states follow which, and where messages lead (contract 5.2)."""

from enum import StrEnum

from fleet.workbench.sim.profiles.profile import Mode


class State(StrEnum):
    """What the device does."""

    STARTING = "starting"
    IDLE = "idle"
    CONNECTING = "connecting"
    LISTENING = "listening"
    SPEAKING = "speaking"
    NOTIFYING = "notifying"
    """Plays a notification (firmware 2.5): entered and left by way of idle only."""


_FOLLOWS: dict[State, frozenset[State]] = {
    State.STARTING: frozenset({State.IDLE}),
    State.IDLE: frozenset({State.CONNECTING, State.LISTENING, State.SPEAKING, State.NOTIFYING}),
    State.CONNECTING: frozenset({State.IDLE, State.LISTENING}),
    State.LISTENING: frozenset({State.SPEAKING, State.IDLE}),
    State.SPEAKING: frozenset({State.LISTENING, State.IDLE}),
    State.NOTIFYING: frozenset({State.IDLE}),
}


class StateMachine:
    """The current state and listening mode."""

    def __init__(self, mode: Mode) -> None:
        self.state = State.STARTING
        self.mode: Mode = mode
        self.wake_word_off = False
        """The wake word detector is off, because a wake word was lost; entering another state switches it on."""
        self.plays_while_listening = False
        """An answer plays while the state stays listening, as py-xiaozhi has it in realtime mode."""

    @property
    def accepts_audio(self) -> bool:
        """Whether audio is let through to the speaker."""
        return self.state is State.SPEAKING or self.plays_while_listening

    def move(self, to: State) -> bool:
        """Go to a state and return True, or refuse silently, as firmware does, what may not follow."""
        if to not in _FOLLOWS[self.state]:
            return False
        self.state = to
        return True


def after_speech_starts(state: State) -> State | None:
    """Return the state that `tts start` leads to, or None when it changes nothing."""
    return State.SPEAKING if state in (State.IDLE, State.LISTENING) else None


def after_speech_stops(state: State, mode: Mode) -> State | None:
    """Return the state that `tts stop` leads to, or None when it changes nothing."""
    if state is not State.SPEAKING:
        return None
    return State.IDLE if mode == "manual" else State.LISTENING

"""What the device's screen shows, as application.cc has it (Alert, DismissAlert, HandleStateChangedEvent)."""

from collections.abc import Callable
from dataclasses import dataclass

from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.runtime.state import State

_NEUTRAL, _FAULT = "neutral", "cancel"


@dataclass(frozen=True, slots=True)
class Shown:
    """One view: the status line, the face, and the newest text with who says it (`user`, `assistant` or `system`)."""

    status: str = ""
    emotion: str = _NEUTRAL
    role: str = ""
    text: str = ""


class Screen:
    """The screen of one boot.

    Args:
        journal: Takes the alerts.
        changed: Called after each change.
    """

    def __init__(self, journal: Journal, changed: Callable[[], None]) -> None:
        self._journal = journal
        self._changed = changed
        self.shown = Shown()

    def enter(self, state: State) -> None:
        """A state was entered: idle and connecting clear the text; speaking leaves the face as it is."""
        now = self.shown
        match state:
            case State.IDLE | State.CONNECTING:
                self._show(Shown(state.value))
            case State.LISTENING:
                self._show(Shown(state.value, _NEUTRAL, now.role, now.text))
            case State.SPEAKING:
                self._show(Shown(state.value, now.emotion, now.role, now.text))
            case State.STARTING:
                pass

    def write(self, role: str, text: str) -> None:
        """Show what somebody says."""
        self._show(Shown(self.shown.status, self.shown.emotion, role, text))

    def clear(self) -> None:
        """The audio channel was closed, also when it was closed before."""
        self.write("system", "")

    def face(self, emotion: str) -> None:
        """Show a face."""
        self._show(Shown(self.shown.status, emotion, self.shown.role, self.shown.text))

    def alert(self, status: str, message: str, emotion: str) -> None:
        """Show an alert; the next state, a goodbye or a new connection clears it."""
        self._journal.note("alert", status=status, message=message, emotion=emotion)
        self._show(Shown(status, emotion, "system", message))

    def fail(self, message: str) -> None:
        """Show a fault that the device found itself."""
        self.alert("error", message, _FAULT)

    def dismiss(self, state: State) -> None:
        """MQTT has connected: an idle device clears its alert."""
        if state is State.IDLE:
            self._show(Shown(state.value))

    def _show(self, shown: Shown) -> None:
        self.shown = shown
        self._changed()

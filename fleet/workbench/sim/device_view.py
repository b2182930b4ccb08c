"""What a simulated device shows: state, records, screen."""

from collections.abc import Callable

from fleet.adapters.speech.pcm import write_wav
from fleet.workbench.sim.firmware.power import Power
from fleet.workbench.sim.firmware.screen import Shown
from fleet.workbench.sim.records.loudness import SAMPLE_BYTES
from fleet.workbench.sim.records.report import Report, build
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.state import State

_BETWEEN_TURNS = 0.5


class DeviceView:
    """A device's state, its records, and waiting for either.

    Args:
        mac: Canonical MAC.
        context: The records.
        power: The device as it runs.
    """

    def __init__(self, mac: str, context: DeviceContext, power: Power) -> None:
        self.mac = mac
        self.profile = context.profile
        self.board = context.board
        self.journal = context.journal
        self.turns = context.turns
        self._signal = context.signal
        self._power = power

    @property
    def state(self) -> State:
        return self._power.current.machine.state if self._power.current else State.STARTING

    @property
    def session(self) -> str:
        """Id of the open session, else empty."""
        return self._power.current.channel.live if self._power.current else ""

    @property
    def listening(self) -> bool:
        """Whether the microphone is on and the server knows."""
        boot = self._power.current
        return boot is not None and self.state is State.LISTENING and boot.microphone.running

    @property
    def speaking(self) -> bool:
        """Whether an answer is let through to the speaker."""
        return self._power.current is not None and self._power.current.machine.accepts_audio

    @property
    def screen(self) -> Shown:
        """What the screen shows; nothing while the device boots."""
        return self._power.current.screen.shown if self._power.current else Shown()

    @property
    def report(self) -> Report:
        """The report so far."""
        tools = self.board.state()
        return build(self.mac, self.profile.name, self.journal, self.turns.turns, tools, self._power.worst_lag)

    async def until(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Wait until a condition of the device holds; return whether it does."""
        return await self._signal.within(seconds, holds)

    def heard_wav(self, turn: int | None = None) -> bytes:
        """Return a WAV file of what was played, in real time: of one turn, or of all with a short pause between."""
        turns = self.turns.turns if turn is None else [self.turns.turns[turn]]
        rate = turns[-1].sample_rate if turns else 24_000
        pause = bytes(round(_BETWEEN_TURNS * rate) * SAMPLE_BYTES)
        return write_wav(pause.join(one.heard() for one in turns if one.pieces), rate)

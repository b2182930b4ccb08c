"""What the device does on entering a state, one pass of the main loop after the change (contract 5.2)."""

import asyncio

from fleet.workbench.sim.firmware.parts import DeviceParts
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.profiles.profile import Mode
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.main_loop import Flag
from fleet.workbench.sim.runtime.state import State


class StateActions:
    """Changes the state, and switches microphone and speaker accordingly.

    Args:
        context: What the device keeps over a restart.
        parts: The parts.
    """

    def __init__(self, context: DeviceContext, parts: DeviceParts) -> None:
        self._context = context
        self._parts = parts
        self._machine = parts.machine
        self._listen_pending = False
        self._afresh = False
        parts.main_loop.on(Flag.STATE_CHANGED, self._enter)
        parts.main_loop.on(Flag.DRAINED, self._listen_if_pending)

    @property
    def state(self) -> State:
        return self._machine.state

    def go(self, to: State) -> None:
        """Change the state if it may follow."""
        before = self._machine.state
        if not self._machine.move(to):
            return
        if before is State.SPEAKING:
            self._parts.gate.end()
        if to is State.SPEAKING:
            self._parts.gate.begin()
        self._context.journal.note("state", state=to.value)
        self._parts.main_loop.set(Flag.STATE_CHANGED)
        self._context.signal.notify()

    def listen(self, mode: Mode, *, afresh: bool = False) -> None:
        """Go listening; `afresh` says so to the server even if the microphone is on already."""
        self._machine.mode = mode
        self._afresh = afresh
        self.go(State.LISTENING)

    async def say_listen(self) -> None:
        """Send `listen start`."""
        channel, mode = self._parts.channel, self._machine.mode
        await channel.send(outbound.listen_start(channel.session, mode))
        self._context.journal.note("listening", mode=mode)

    def play_while_listening(self, *, begins: bool) -> None:
        """An answer begins, or ends, while the state stays listening."""
        if self._machine.plays_while_listening == begins:
            return
        self._machine.plays_while_listening = begins
        if begins:
            self._parts.gate.begin()
            self._parts.gate.clear()
        else:
            self._parts.gate.end()
        self._context.signal.notify()

    async def _enter(self) -> None:
        self._parts.screen.enter(self._machine.state)
        self._machine.wake_word_off = False
        match self._machine.state:
            case State.IDLE | State.NOTIFYING:
                self._listen_pending = False
                self._parts.microphone.stop()
            case State.LISTENING:
                await self._enter_listening()
            case State.SPEAKING:
                await self._enter_speaking()

    async def _enter_listening(self) -> None:
        if self._parts.microphone.running and not self._afresh:
            return
        self._afresh = False
        self._listen_pending = True
        drain = self._context.profile.drain
        if self._machine.mode == "auto" and not self._parts.playback.is_idle():
            if drain == "deferred":
                return
            if drain == "blocking":
                await self._context.signal.until(lambda: self._parts.playback.is_idle())
        await self._listen_if_pending()

    async def _listen_if_pending(self) -> None:
        if not self._listen_pending or self._machine.state is not State.LISTENING:
            return
        self._listen_pending = False
        await self.say_listen()
        self._parts.microphone.start(self._context.draw(self._context.profile.timing.warm_up))

    async def _enter_speaking(self) -> None:
        self._listen_pending = False
        await asyncio.sleep(self._context.draw(self._context.profile.timing.clear))
        if self._machine.mode != "realtime":
            self._parts.microphone.stop()
        self._parts.references.clear()
        self._parts.gate.clear()

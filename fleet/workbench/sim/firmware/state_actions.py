"""What the device does on entering a state, one pass of the main loop after the change (contract 5.2)."""

import asyncio

from fleet.workbench.sim.firmware.parts import Body
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.profiles.profile import Mode
from fleet.workbench.sim.runtime.context import Owner
from fleet.workbench.sim.runtime.main_loop import Flag
from fleet.workbench.sim.runtime.state import State


class Stance:
    """Changes the state, and switches microphone and speaker accordingly.

    Args:
        owner: What outlives a restart.
        body: The parts.
    """

    def __init__(self, owner: Owner, body: Body) -> None:
        self._owner = owner
        self._body = body
        self._machine = body.machine
        self._listen_pending = False
        self._afresh = False
        body.main_loop.on(Flag.STATE_CHANGED, self._enter)
        body.main_loop.on(Flag.DRAINED, self._listen_if_pending)

    @property
    def state(self) -> State:
        return self._machine.state

    def go(self, to: State) -> None:
        """Change the state if it may follow."""
        before = self._machine.state
        if not self._machine.move(to):
            return
        if before is State.SPEAKING:
            self._body.intake.end()
        if to is State.SPEAKING:
            self._body.intake.begin()
        self._owner.journal.note("state", state=to.value)
        self._body.main_loop.set(Flag.STATE_CHANGED)
        self._owner.signal.notify()

    def listen(self, mode: Mode, *, afresh: bool = False) -> None:
        """Go listening; `afresh` says so to the server even if the microphone is on already."""
        self._machine.mode = mode
        self._afresh = afresh
        self.go(State.LISTENING)

    async def say_listen(self) -> None:
        """Tell the server that the device listens."""
        channel, mode = self._body.channel, self._machine.mode
        await channel.send(outbound.listen_start(channel.session, mode))
        self._owner.journal.note("listening", mode=mode)

    def overhear(self, *, begins: bool) -> None:
        """An answer begins, or ends, while the state stays listening."""
        if self._machine.overheard == begins:
            return
        self._machine.overheard = begins
        if begins:
            self._body.intake.begin()
            self._body.intake.clear()
        else:
            self._body.intake.end()
        self._owner.signal.notify()

    async def _enter(self) -> None:
        self._body.screen.enter(self._machine.state)
        self._machine.deaf = False
        match self._machine.state:
            case State.IDLE | State.NOTIFYING:
                self._listen_pending = False
                self._body.microphone.stop()
            case State.LISTENING:
                await self._enter_listening()
            case State.SPEAKING:
                await self._enter_speaking()

    async def _enter_listening(self) -> None:
        if self._body.microphone.running and not self._afresh:
            return
        self._afresh = False
        self._listen_pending = True
        drain = self._owner.profile.drain
        if self._machine.mode == "auto" and not self._body.playback.idle:
            if drain == "deferred":
                return
            if drain == "blocking":
                await self._owner.signal.until(lambda: self._body.playback.idle)
        await self._listen_if_pending()

    async def _listen_if_pending(self) -> None:
        if not self._listen_pending or self._machine.state is not State.LISTENING:
            return
        self._listen_pending = False
        await self.say_listen()
        self._body.microphone.start(self._owner.draw(self._owner.profile.timing.warm_up))

    async def _enter_speaking(self) -> None:
        self._listen_pending = False
        await asyncio.sleep(self._owner.draw(self._owner.profile.timing.clear))
        if self._machine.mode != "realtime":
            self._body.microphone.stop()
        self._body.references.clear()
        self._body.intake.clear()

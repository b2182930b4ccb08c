"""When the device tries to reach MQTT again (contract 2.3)."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.runtime.main_loop import MainLoop
from fleet.workbench.sim.runtime.state import State, StateMachine


class Reconnection:
    """Waits between attempts as the build does.

    Args:
        profile: Which build this is.
        machine: Says whether the device is idle.
        main_loop: Is held up by the application's own attempt.
        connected: Waits until MQTT is up, for so many seconds at most; returns at once if it is.
    """

    def __init__(
        self,
        profile: Profile,
        machine: StateMachine,
        main_loop: MainLoop,
        connected: Callable[[float], Awaitable[bool]],
    ) -> None:
        self._profile = profile
        self._machine = machine
        self._main_loop = main_loop
        self._connected = connected
        self._hurry = asyncio.Event()

    def hurry(self) -> None:
        """Somebody needs the connection now."""
        self._hurry.set()

    async def first(self) -> None:
        """Wait until the first attempt is due."""
        if self._profile.link == "session":
            await self._hurry.wait()

    async def pause(self, *, lost: bool) -> None:
        """Wait until the next attempt is due, after a connection was lost or an attempt failed."""
        self._hurry.clear()
        timing = self._profile.timing
        if self._profile.link == "always":
            if lost:
                asyncio.get_running_loop().call_later(timing.rebuild, self._rebuild)
            await self._hurried(timing.reconnect)
            return
        if self._profile.link == "modem" and lost:
            hurried = await self._hurried(timing.rebuild)
            if hurried or self._machine.state is State.IDLE:
                return
        await self._hurry.wait()

    async def _hurried(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
                return True
        return False

    def _rebuild(self) -> None:
        """A minute after the loss the application itself tries once, if idle, and stands still meanwhile."""

        async def connect() -> None:
            await self._connected(self._profile.timing.mqtt_connect)

        if self._machine.state is State.IDLE:
            self._main_loop.schedule(connect)

"""Pauses between attempts; they are short here, and only their order is judged."""

import asyncio
from dataclasses import replace

from fleet.workbench.sim.connection.reconnect import Reconnection
from fleet.workbench.sim.profiles.profile import PROFILES
from fleet.workbench.sim.runtime.main_loop import MainLoop
from fleet.workbench.sim.runtime.state import State, StateMachine
from tests.support.virtual_time import elapse


class Bench:
    def __init__(self, name: str, **times: float) -> None:
        profile = PROFILES[name]
        self.machine = StateMachine("auto")
        self.machine.state = State.IDLE
        self.main_loop = MainLoop()
        self.attempts = 0
        timing = replace(profile.timing, **times)  # type: ignore[arg-type]
        self.reconnection = Reconnection(replace(profile, timing=timing), self.machine, self.main_loop, self.attempt)

    async def attempt(self, _: float) -> bool:
        self.attempts += 1
        return True

    async def ends(self, *, lost: bool, seconds: float = 0.3) -> bool:
        """Return whether the pause is over after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self.reconnection.pause(lost=lost)
        except TimeoutError:
            return False
        return True


async def test_a_wifi_board_tries_again_after_a_fixed_time_whatever_happened() -> None:
    bench = Bench("P1", reconnect=0.01)
    assert await bench.ends(lost=False, seconds=240)
    assert await bench.ends(lost=True, seconds=240)
    assert not await Bench("P1", reconnect=10.0).ends(lost=True)


async def test_after_a_minute_the_application_of_an_idle_board_tries_too() -> None:
    for state, attempts in ((State.IDLE, 1), (State.LISTENING, 0)):
        bench = Bench("P1", reconnect=0.05, rebuild=0.01)
        bench.machine.state = state
        assert await bench.ends(lost=True, seconds=240)
        await bench.main_loop.run_pass()
        assert bench.attempts == attempts


async def test_a_modem_tries_once_after_a_loss_and_only_if_idle() -> None:
    assert await Bench("P7", rebuild=0.01).ends(lost=True, seconds=240)
    busy = Bench("P7", rebuild=0.01)
    busy.machine.state = State.LISTENING
    assert not await busy.ends(lost=True)
    assert not await Bench("P7", rebuild=0.01).ends(lost=False), "nothing re-arms after a failed attempt"


async def test_a_wake_word_ends_every_pause() -> None:
    for name in ("P1", "P7", "P8"):
        bench = Bench(name)
        async with asyncio.timeout(240), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(bench.ends(lost=True, seconds=240))
            await asyncio.sleep(0)
            bench.reconnection.hurry()
        assert waiting.result()


async def test_py_xiaozhi_does_not_connect_before_a_conversation() -> None:
    bench = Bench("P8")
    async with asyncio.timeout(240), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(bench.reconnection.first())
        await elapse(0.01)
        assert not waiting.done()
        bench.reconnection.hurry()
    assert not await bench.ends(lost=False)
    async with asyncio.timeout(240):
        await Bench("P1").reconnection.first()

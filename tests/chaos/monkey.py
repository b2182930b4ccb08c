"""Carries a plan of faults out."""

import asyncio
import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from tests.chaos.house import House, Moment
from tests.chaos.members import DRAIN_SECONDS, READY_SECONDS, Ensemble, Member
from tests.chaos.plan import Fault

_LOOK = 0.02
_TRAP_SECONDS = 15.0
"""After so long without its line, a fault strikes all the same."""
_AT_ONCE = 2
_SIGNALS = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP, "restart": signal.SIGTERM}


class Monkey:
    """Strikes as planned, at most two at once, and never the same process twice at once.

    Args:
        ensemble: The processes.
        plan: The faults in their order.
        house: Told of each.
    """

    def __init__(self, ensemble: Ensemble, plan: Sequence[Fault], house: House) -> None:
        self._ensemble = ensemble
        self._plan = plan
        self._house = house
        self._busy: set[str] = set()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self.struck = 0
        self.missed: list[Fault] = []
        """Faults at a line that never came: they struck at some moment instead."""

    async def run(self) -> None:
        """Strike until the plan is carried out and everything runs again."""
        async with asyncio.TaskGroup() as group:
            for fault in self._plan:
                await self._house.changed.until(partial(self._reached, fault.after))
                await self._slots.acquire()
                names = self._names(fault)
                await self._house.changed.until(partial(self._busy.isdisjoint, names))
                self._busy |= names
                group.create_task(self._strike(fault, names), name=f"fault {fault.number}")

    def _reached(self, turns: int) -> bool:
        return self._house.over >= turns

    def _names(self, fault: Fault) -> set[str]:
        """Return which processes nobody else may strike meanwhile."""
        if fault.point and fault.target == "worker":
            return {worker.name for worker in self._ensemble.workers}
        return {self._ensemble.find(fault.target, fault.which).name}

    async def _strike(self, fault: Fault, names: set[str]) -> None:
        try:
            member = await self._hit(fault)
            moment = Moment(str(fault), fault.kind, self._house.now())
            self._house.faults.append(moment)
            self._house.journal.note("", "fault", fault=str(fault), member=member.name)
            self._house.changed.notify()
            await self._heal(fault, member, [one for one in self._ensemble.all if one.name in names])
            moment.ended = self._house.now()
            self._house.journal.note("", "fault over", fault=fault.number, member=member.name)
        finally:
            self.struck += 1
            self._busy -= names
            self._slots.release()
            self._house.changed.notify()

    async def _hit(self, fault: Fault) -> Member:
        """Strike, at once or at the fault's line; return what was hit."""
        member = self._ensemble.find(fault.target, fault.which)
        if fault.point and (hit := await self._trap(fault, member)):
            return hit
        member.send(_SIGNALS[fault.how])
        return member

    async def _trap(self, fault: Fault, member: Member) -> Member | None:
        workers = self._ensemble.workers
        own = fault.target == "worker"
        order = {"message": fault.point, "nth": fault.nth, "signal": int(_SIGNALS[fault.how])}
        for worker in workers:
            worker.order({**order, "pids": [] if own else [member.pid]})
        prey = workers if own else [member]
        sprung = await _within(_TRAP_SECONDS, lambda: any(not one.alive or one.frozen for one in prey))
        for worker in workers:
            worker.order({})
        if not sprung:
            self.missed.append(fault)
            return None
        return next(one for one in prey if not one.alive or one.frozen)

    async def _heal(self, fault: Fault, member: Member, struck: list[Member]) -> None:
        """Undo it; a line may have come in both workers at once."""
        if fault.how == "freeze":
            await asyncio.sleep(fault.seconds)
            for one in struck:
                one.send(signal.SIGCONT)
            await _until_ready(struck)
            return
        began = self._house.now()
        if await _within(DRAIN_SECONDS, lambda: not member.alive):
            member.drains += [self._house.now() - began] if fault.how == "restart" else []
        else:
            self._house.blame("does not end", f"{member.name} still runs {DRAIN_SECONDS:g} s after SIGTERM")
            member.send(signal.SIGKILL)
        await asyncio.sleep(fault.seconds)
        dead = [one for one in struck if not one.alive]
        for one in dead:
            one.start()
        await _until_ready(dead)


async def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Wait until a state of another process is so; return whether it is."""
    give_up = asyncio.get_running_loop().time() + seconds
    while not holds():
        if asyncio.get_running_loop().time() > give_up:
            return False
        await asyncio.sleep(_LOOK)
    return True


async def _until_ready(members: Iterable[Member]) -> None:
    """Wait until they are, or have ended; a fault lasts until then."""
    with suppress(TimeoutError):
        async with asyncio.timeout(READY_SECONDS):
            for one in members:
                # In a thread, as the devices live in this one.
                while one.alive and not await asyncio.to_thread(one.is_ready):
                    await asyncio.sleep(_LOOK)

"""A crowd of simulated devices for a benchmark, in as many processes as open files need."""

import asyncio
import itertools
import json
import resource
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fleet.ground.errors import Unavailable
from fleet.workbench.bench.control import Child, child
from fleet.workbench.sim.crowd.crowd import CrowdPlan
from fleet.workbench.sim.crowd.ledger import merge
from fleet.workbench.sim.crowd.run import slices
from fleet.workbench.sim.crowd.shares import Shares


class CrowdProcesses:
    """The crowd.

    Args:
        parts: Its processes.
        folder: For what they report.
    """

    def __init__(self, parts: list[Child], folder: Path) -> None:
        self._parts, self._folder = parts, folder

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in self._parts]

    async def boot(self, seconds: float) -> int:
        """Switch all devices on; return how many are connected then.

        Raises:
            Unavailable: It takes longer.
        """
        answers = await self._ask("boot")
        try:
            async with asyncio.timeout(seconds):
                while not all(one["ready"] for one in answers):
                    await asyncio.sleep(0.5)
                    answers = await self._ask("state")
        except TimeoutError:
            raise Unavailable(f"the crowd had not booted after {seconds:g} s: {answers}") from None
        return sum(one["online"] for one in answers)

    async def behave(self, shares: Shares) -> None:
        """Let calls end in other ways from now on."""
        await self._ask("shares", shares=asdict(shares))

    async def scatter(self, count: int) -> None:
        """Cut so many connections of each process."""
        await self._ask("scatter", count=count)

    async def occupy(self, count: int) -> int:
        """Let some devices that play notifications be busy; return how many play notifications, with these."""
        each, more = divmod(count, len(self._parts))
        answers = [await one.ask("occupy", count=each + (at < more)) for at, one in enumerate(self._parts)]
        return sum(one["newer"] for one in answers)

    async def report(self) -> dict[str, Any]:
        """Return what the devices were told; see `Ledger.document`."""
        documents = []
        for number, part in enumerate(self._parts):
            file = self._folder / f"crowd-{number}.json"
            await part.ask("report", file=str(file))
            documents.append(json.loads(file.read_text(encoding="utf-8")))
        return merge(documents)

    async def _ask(self, command: str, **arguments: object) -> list[dict[str, Any]]:
        return [await one.ask(command, **arguments) for one in self._parts]


@asynccontextmanager
async def crowd(plan: CrowdPlan, folder: Path, brokers: Sequence[str] = ("",)) -> AsyncIterator[CrowdProcesses]:
    """Run the processes of a crowd during the block; its devices are still switched off.

    Args:
        plan: The whole crowd.
        folder: For what the processes report.
        brokers: Those that processes use in turn, instead of that of `plan`.
    """
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with AsyncExitStack() as stack:
        parts = []
        for part, broker in zip(slices(plan, files, len(brokers)), itertools.cycle(brokers), strict=False):
            text = json.dumps(asdict(replace(part, broker=broker)))
            parts.append(await stack.enter_async_context(child("fleet.workbench.bench.crowd_load", "crowd", text)))
        yield CrowdProcesses(parts, folder)

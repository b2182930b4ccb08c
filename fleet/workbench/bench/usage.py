"""What processes use of the machine, as the kernel counts it."""

import asyncio
import resource
import time
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

_PROC = Path("/proc")
_PAGE = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time in seconds since the process began, and memory that it holds, in bytes."""

    cpu: float
    memory: int

    @classmethod
    def of(cls, pids: Iterable[int]) -> "Usage":
        """Return the sum over some processes that run."""
        found = list(pids)
        return cls(sum(map(_cpu_seconds, found)), sum(map(_resident, found)))


def family(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    tasks = (_PROC / str(pid) / "task").iterdir()
    children = [child for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]
    return [pid, *(one for child in children for one in family(int(child)))]


def _cpu_seconds(pid: int) -> float:
    """Return the scheduler's own count, in nanoseconds; `stat` counts in hundredths of a second."""
    return sum(_on_core(task) for task in (_PROC / str(pid) / "task").iterdir()) / 1e9


def _on_core(task: Path) -> int:
    try:
        return int((task / "schedstat").read_text(encoding="ascii").split()[0])
    except FileNotFoundError:
        return 0  # a thread that has just ended


def _resident(pid: int) -> int:
    return int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1]) * _PAGE


@dataclass(frozen=True, slots=True)
class Measured(Generic[T]):
    """A result, the seconds that it took, and the CPU seconds of each part without what it uses at rest."""

    result: T
    seconds: float
    cpu: dict[str, float]


class CpuMeter:
    """Measures the processes of a benchmark, grouped into parts.

    Args:
        pids: Process ids by part.
    """

    def __init__(self, pids: Mapping[str, Iterable[int]]) -> None:
        self._pids = {part: list(found) for part, found in pids.items()}
        self.idle = dict.fromkeys(self._pids, 0.0)
        """What each part uses at rest: share of a core."""

    def look(self) -> dict[str, Usage]:
        """Return what each part has used so far."""
        return {part: Usage.of(pids) for part, pids in self._pids.items()}

    async def rest(self, seconds: float) -> None:
        """Measure `idle` while nothing happens."""
        self.idle = dict.fromkeys(self._pids, 0.0)
        rest = await self.during(asyncio.sleep(seconds))
        self.idle = {part: cpu / rest.seconds for part, cpu in rest.cpu.items()}

    async def settle(self, part: str, share: float, window: float, longest: float) -> None:
        """Measure `idle` until a part uses at most so much of a core, for at most so many seconds.

        Args:
            part: That may still have work.
            share: Of a core.
            window: Seconds of each measurement.
            longest: Seconds after which no further measurement begins.
        """
        until = time.perf_counter() + longest
        await self.rest(window)
        while self.idle[part] > share and time.perf_counter() < until:
            await self.rest(window)

    async def during(self, work: Awaitable[T]) -> Measured[T]:
        """Await some work and return its result with what it cost."""
        before, begun = self.look(), time.perf_counter()
        result = await work
        seconds, after = time.perf_counter() - begun, self.look()
        cpu = {part: after[part].cpu - before[part].cpu - self.idle[part] * seconds for part in self._pids}
        return Measured(result, seconds, {part: max(used, 0.0) for part, used in cpu.items()})

"""What processes use of the machine, as the kernel counts it."""

import resource
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

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

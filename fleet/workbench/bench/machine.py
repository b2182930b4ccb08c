"""What a benchmark ran on."""

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, and when."""

    cpu: str
    cores: int
    """That this process may use."""
    python: str
    system: str
    busy: float
    """Processes that wanted a core in the minute before (load average): the figures mean less when it is high."""
    date: str

    @classmethod
    def here(cls) -> "Machine":
        return cls(
            cpu=_cpu_model(),
            cores=len(os.sched_getaffinity(0)),
            python=f"{platform.python_implementation()} {platform.python_version()}",
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
            busy=os.getloadavg()[0],
            date=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _cpu_model() -> str:
    try:
        lines = _CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    found = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(found, platform.machine())

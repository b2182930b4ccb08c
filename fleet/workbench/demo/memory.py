"""Resident memory of processes, as Linux counts it."""

from collections import defaultdict
from pathlib import Path

_PROC = Path("/proc")
_KB = 1024


def memory_started_by(parent: int, proc: Path = _PROC) -> int:
    """Return the resident bytes of all that a process started, and that these started; 0 where it is unknown."""
    children: dict[int, list[int]] = defaultdict(list)
    sizes: dict[int, int] = {}
    for status in proc.glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines() if ":" in line)
        except OSError:
            continue  # It has ended.
        pid = int(status.parent.name)
        children[int(fields.get("PPid", "0"))].append(pid)
        sizes[pid] = int(fields.get("VmRSS", "0").split()[0]) * _KB
    family, waiting = 0, list(children[parent])
    while waiting:
        pid = waiting.pop()
        family += sizes[pid]
        waiting.extend(children[pid])
    return family

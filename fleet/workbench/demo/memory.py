"""Reads the resident memory of processes from Linux."""

from collections import defaultdict
from pathlib import Path

_PROC = Path("/proc")
_KB = 1024


def memory_of_children(parent: int, proc: Path = _PROC) -> int:
    """Return the resident bytes of all descendants of a process; 0 if the system does not report them."""
    children: dict[int, list[int]] = defaultdict(list)
    sizes: dict[int, int] = {}
    for status in proc.glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines() if ":" in line)
        except OSError:
            continue  # the process has ended
        pid = int(status.parent.name)
        children[int(fields.get("PPid", "0"))].append(pid)
        sizes[pid] = int(fields.get("VmRSS", "0").split()[0]) * _KB
    total, remaining = 0, list(children[parent])
    while remaining:
        pid = remaining.pop()
        total += sizes[pid]
        remaining.extend(children[pid])
    return total

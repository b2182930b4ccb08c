"""Scheduling groups of Linux: all processes of a session share what the session gets of the processors (sched(7))."""

from contextlib import suppress
from pathlib import Path


def share_autogroup(pid: int, proc: Path = Path("/proc")) -> None:
    """Give another session as much of the processors as this one has; nothing where there are no such groups.

    Args:
        pid: A process of the other session.
        proc: Where the kernel shows its processes.
    """
    with suppress(OSError, ValueError):
        nice = int((proc / "self" / "autogroup").read_text().rpartition(" ")[2])
        if nice:
            (proc / str(pid) / "autogroup").write_text(f"{nice}\n")

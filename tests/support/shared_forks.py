"""Lets several test processes fork roles from one process that has imported them (`preloaded`): each costs 1.3 s.

The processes of a `team` have the same priority. The first of them that forks starts the process to fork from and notes
it in a file. That ends when the last process that uses it ends.
"""

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import current_process, forkserver
from pathlib import Path
from typing import Any

SERVER = vars(vars(forkserver)["_forkserver"])
"""What this process knows of the process that forks."""


def use_server(address: str, ensure: Callable[[], None] = lambda: None, **known: int) -> None:
    """Fork from a process that is no child of this one."""
    SERVER.update(_forkserver_address=address, ensure_running=ensure, **known)
    forkserver.ensure_running = ensure


def share_forks(file: Path) -> None:
    """Let this process use the process that forks which the file notes, or start and note it when it is needed."""
    start: Callable[[], None] = forkserver.ensure_running

    def ensure() -> None:
        with file.open("a+", encoding="utf-8") as notes:
            fcntl.flock(notes, fcntl.LOCK_EX)
            notes.seek(0)
            address, pipe = next(filter(None, map(_join, notes.read().splitlines())), None) or _start(start, file)
            # Who comes later joins through this process, too: the one that started it may have ended.
            print(os.getpid(), pipe, Path(f"/proc/self/fd/{pipe}").readlink(), address, file=notes)
        use_server(address, _forkserver_alive_fd=pipe)

    use_server("", ensure)


def _join(note: str) -> tuple[str, int] | None:
    """Return the address and a handle without which the process that forks would end; None if its user has ended."""
    user, handle, pipe, address = note.split(" ", 3)
    path = f"/proc/{user}/fd/{handle}"
    with suppress(OSError):
        opened = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        if str(Path(f"/proc/self/fd/{opened}").readlink()) == pipe:
            return address, opened
        os.close(opened)
    return None


def _start(start: Callable[[], None], file: Path) -> tuple[str, int]:
    config: dict[str, Any] = vars(current_process())["_config"]
    before = config.get("tempdir")
    # Its socket must outlive this process, whose own folder is removed when it ends.
    config["tempdir"] = str(file.parent)
    try:
        start()
    finally:
        config["tempdir"] = before
    return SERVER["_forkserver_address"], SERVER["_forkserver_alive_fd"]

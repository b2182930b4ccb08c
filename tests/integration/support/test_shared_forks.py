"""Test processes that share a process to fork from."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from tests.support.forked import CONTEXT
from tests.support.shared_forks import share_forks

# Imports nothing, so that this takes no second.
CONTEXT.set_forkserver_preload(["signal"])

def parent() -> int:
    reading, writing = CONTEXT.Pipe(duplex=False)
    child = CONTEXT.Process(target=tell, args=(writing,))
    child.start()
    found = reading.recv()
    child.join()
    return found

def tell(writing: Connection) -> None:
    writing.send(os.getppid())

if __name__ == "__main__":
    share_forks(Path(sys.argv[1]))
    while input():
        print(parent(), flush=True)
"""


class _User:
    """A process that forks from the one that `file` notes."""

    def __init__(self, program: Path, file: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        command = (sys.executable, str(program), str(file))
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fork(self) -> int:
        """Return the process from which it forked."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("fork\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        # Its output has no end yet: the process that forks has it, too.
        assert self._process.wait(240) == 0
        self.close()

    def close(self) -> None:
        """End it, if it still runs."""
        assert self._process.stdin and self._process.stdout
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def test_the_process_that_forks_is_shared_and_ends_with_its_last_user(tmp_path: Path) -> None:
    program, file = tmp_path / "program.py", tmp_path / "forks"
    program.write_text(PROGRAM, encoding="utf-8")
    users = [_User(program, file) for _ in range(3)]
    first, second, third = users
    try:
        server = first.fork()
        assert second.fork() == server
        first.end()
        assert third.fork() == server  # through the second
        second.end()
        assert third.fork() == server
        third.end()
        later = _User(program, file)
        users.append(later)
        assert later.fork() != server
        assert not Path(f"/proc/{server}/cmdline").exists() or not Path(f"/proc/{server}/cmdline").read_bytes()
        later.end()
    finally:
        for user in users:
            user.close()

"""A server as a child process: started, watched until it accepts connections, stopped or killed."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from tests.support.ports import LOOPBACK

READY_SECONDS = 240.0
STOP_SECONDS = 240.0
_PROBE_SECONDS = 0.01


def find_program(name: str, package: str) -> str:
    """Return the path of a server's program, also from the directories that only root has in its path."""
    found = shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")
    if found is None:
        pytest.fail(f"this test needs `{name}`: install it (apt-get install {package})", pytrace=False)
    return found


def accepts(port: int) -> bool:
    """Return whether a server accepts connections on a loopback port now."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


class Server(Protocol):
    """Anything that can be started, and ended for good."""

    def start(self) -> None: ...
    def discard(self) -> None: ...


S = TypeVar("S", bound=Server)


@contextmanager
def running(server: S) -> Iterator[S]:
    """Start a server and end it for good with the block, whatever state it is in then."""
    try:
        server.start()
        yield server
    finally:
        server.discard()


class ServerProcess:
    """One server on one loopback port. It can be started again after it ended; its log grows.

    Args:
        command: Program and arguments.
        port: Where it listens when it is ready.
        log: File for what it writes to standard output and error.
        environment: Variables that it gets besides ours.
    """

    def __init__(self, command: list[str], port: int, log: Path, environment: dict[str, str] | None = None) -> None:
        self._command = command
        self._environment = os.environ | (environment or {})
        self._port = port
        self._log = log
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._child is not None, "the server was never started"
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        """Start it and return when it accepts connections; fail the test when it does not."""
        self._spawn()
        give_up = time.monotonic() + READY_SECONDS
        while not accepts(self._port):
            if self._ended_within(_PROBE_SECONDS) or time.monotonic() > give_up:
                self.kill()
                pytest.fail(f"{self._command[0]} did not get ready:\n{self.log}", pytrace=False)

    def start_failing(self) -> None:
        """Start it and return when it has ended by itself with an error; fail the test when it keeps running."""
        self._spawn()
        if not self._ended_within(READY_SECONDS) or self.stop() == 0:
            self.kill()
            pytest.fail(f"{self._command[0]} should have refused to run:\n{self.log}", pytrace=False)

    def stop(self) -> int | None:
        """Ask it to end (SIGTERM), end it after a limit, and return its exit code."""
        if self._child is None:
            return None
        if self.alive:
            self._child.terminate()
        if not self._ended_within(STOP_SECONDS):
            self.kill()
        return self._child.returncode

    def discard(self) -> None:
        self.stop()

    def kill(self) -> None:
        """End it at once (SIGKILL): nothing is saved, no connection is closed in order."""
        if self._child is not None:
            self._child.kill()
            self._child.wait(STOP_SECONDS)

    def signal(self, number: signal.Signals) -> None:
        assert self._child is not None, "the server was never started"
        self._child.send_signal(number)

    def _spawn(self) -> None:
        assert not self.alive, "the server already runs"
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment
            )

    def _ended_within(self, seconds: float) -> bool:
        assert self._child is not None, "the server was never started"
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

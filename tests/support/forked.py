"""The command `fleet` in a process of its own that begins with everything imported.

To import a role takes a second of a core, and hundreds of processes are started: they are forked from one that has
done it. What runs is the same, but for the time that it has (`patient_fleet`), so only tests of how the command itself
starts need a fresh Python (`FleetProcess`).
"""

import ctypes
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import IO

_PDEATHSIG = 1
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.support.preloaded"])


class ForkedProcess:
    """A process that was forked; behaves as `subprocess.Popen` does as far as tests need it."""

    _process: ForkServerProcess

    @property
    def returncode(self) -> int | None:
        return self.poll()

    @property
    def pid(self) -> int:
        assert self._process.pid
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, once it has ended."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, seconds: float) -> int:
        """Return the exit code, when it comes.

        Raises:
            TimeoutExpired: It still runs.
        """
        self._process.join(seconds)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("fleet", seconds)
        return code


class Forked(ForkedProcess):
    """One `fleet …`.

    Args:
        words: The command line after `fleet`.
        environment: Its whole environment; what the loader reads (LD_PRELOAD) comes too late.
        stdout: Whether `written` also has what it writes to standard output, besides standard error; or a file for it.
        patient: Whether it waits longer for Redis and the database than in production; not if Redis is gone for good.
    """

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], *, stdout: bool | str = False, patient: bool = True
    ) -> None:
        reading, writing = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_run, args=(list(words), dict(environment), writing, stdout, patient))
        self._process.start()
        writing.close()
        self.written = os.fdopen(os.dup(reading.fileno()), encoding="utf-8")
        """Its output, to its end; closed by who reads it."""
        reading.close()


class ForkedModule(ForkedProcess):
    """A module with arguments that runs as `python -m` runs it; ends with the tests, as setpriv lets programs do.

    Args:
        words: The module and its arguments.
        environment: Its whole environment.
        log: File to which its output is added.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], log: str) -> None:
        reading, writing = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_run_module, args=(list(words), dict(environment), reading, log))
        self._process.start()
        reading.close()
        self.stdin: IO[bytes] = os.fdopen(os.dup(writing.fileno()), "wb")
        writing.close()


def _run(words: list[str], environment: dict[str, str], writing: Connection, stdout: bool | str, patient: bool) -> None:
    for stream in (1, 2) if stdout is True else (2,):
        os.dup2(writing.fileno(), stream)
    writing.close()
    if isinstance(stdout, str):
        # It is the object that Python prints to, which flushes what it has when the process ends.
        os.dup2(os.open(stdout, os.O_WRONLY), 1)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["fleet", *words]
    from fleet.cli import main
    from tests.support.patient_fleet import be_patient

    if patient:
        be_patient()
    main()


def _run_module(words: list[str], environment: dict[str, str], reading: Connection, log: str) -> None:
    die_with_parent()
    os.dup2(reading.fileno(), 0)
    reading.close()
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    sys.stdin = os.fdopen(0, closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def die_with_parent() -> None:
    """Let the kernel end this process when the one that forked it ends: what a killed run has forked ends with it."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGTERM)

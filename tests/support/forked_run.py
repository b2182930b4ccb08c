"""Shares the files of one run among processes that begin when all tests are collected: `--processes N`.

pytest-xdist does the same, but each of its processes imports and collects everything itself: ten seconds of a core for
the tests with servers, six times.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

import pytest

from tests.support.forked_share import Share

Location = tuple[str, int | None, str]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the command line say how many processes share the files; without it this plugin does nothing."""
    parser.addoption("--processes", type=int, default=0, help="share the files among N forks of this process")


@dataclass
class Process:
    """One fork, and the test that it runs at the moment."""

    number: int
    pid: int
    news: Connection
    running: tuple[str, Location] | None = None
    done: bool = False
    broken: str = ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the files in forks, and report what they report."""
    option = session.config.option
    others = option.collectonly or session.testsfailed or session.config.getoption("numprocesses", None)
    if not option.processes or others or not session.items:
        return None
    run = ForkedRun(session)
    try:
        run.begin(option.processes)
        run.follow()
    finally:
        run.end()
    return True


@dataclass
class ForkedRun:
    """The processes of one run."""

    session: pytest.Session
    processes: list[Process] = field(default_factory=list)

    def begin(self, count: int) -> None:
        """Start the processes. Each takes the number of its next file from one pipe, so none waits for another."""
        files = [list(items) for _, items in groupby(self.session.items, key=lambda item: item.path)]
        numbers, hand_out = os.pipe()
        base = self.session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        sys.stdout.flush()
        sys.stderr.flush()
        # What a shell starts beside others ignores Ctrl-C; its processes must not, as `end` uses that.
        usual = signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in range(min(count, len(files))):
            here, there = multiprocessing.Pipe(duplex=False)
            with warnings.catch_warnings():
                # Python 3.12 warns of a fork beside threads. Those of NumPy's library are made for it.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if not pid:
                os.close(hand_out)
                Share(self.session, files, numbers, there, base / f"process{number}").run()
            there.close()
            self.processes.append(Process(number, pid, here))
        signal.signal(signal.SIGINT, usual)
        os.close(numbers)
        with contextlib.suppress(BrokenPipeError), os.fdopen(hand_out, "wb") as pipe:
            pipe.writelines(number.to_bytes(4, "big") for number in range(len(files)))

    def follow(self) -> None:
        """Report what the processes send until all have ended.

        Raises:
            pytest.Session.Failed: As many tests failed as may (`-x`).
        """
        by_news = {process.news: process for process in self.processes}
        while by_news:
            for ready in connection.wait(list(by_news)):
                assert isinstance(ready, Connection)
                process = by_news[ready]
                try:
                    kind, value = ready.recv()
                except (EOFError, OSError):
                    del by_news[ready]
                    self._ended(process)
                else:
                    self._note(process, kind, value)
            if self.session.shouldfail:
                raise self.session.Failed(self.session.shouldfail)

    def end(self) -> None:
        """Interrupt what still runs, as Ctrl-C does, so that it stops its servers; wait for all."""
        for process in self.processes:
            process.news.close()
            if not process.done:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGINT)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, 0)

    def _note(self, process: Process, kind: str, value: Any) -> None:
        config = self.session.config
        if kind == "begins":
            process.running = value
            config.hook.pytest_runtest_logstart(nodeid=value[0], location=value[1])
        elif kind == "report":
            report = config.hook.pytest_report_from_serializable(config=config, data=value)
            config.hook.pytest_runtest_logreport(report=report)
        elif kind == "ends":
            process.running = None
            config.hook.pytest_runtest_logfinish(nodeid=value[0], location=value[1])
        elif kind == "broken":
            process.broken = value
        else:
            process.done = True

    def _ended(self, process: Process) -> None:
        if process.done:
            return
        nodeid, location = process.running or ("tests", ("tests", None, "between two tests"))
        said = process.broken or f"process {process.number} of this run ended here"
        report = pytest.TestReport(nodeid, location, {}, "failed", said, "call")
        self.session.config.hook.pytest_runtest_logreport(report=report)

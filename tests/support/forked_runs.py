"""`--forks N`: a pytest plugin that collects once, and runs the files of tests in N processes that are forked then.

Each process of pytest-xdist reads all files of its run, and imports what they need: four seconds of a core for
`tests/integration`. What is forked has all that, and they share the process that forks roles (`forked`).
"""

import atexit
import gc
import os
import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from multiprocessing import Pipe, forkserver
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest
from _pytest.unraisableexception import collect_unraisable

from tests.support import forked

Files = Sequence[Sequence[pytest.Item]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="run the files of tests in so many processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Let processes run the tests, and report what they tell."""
    number = session.config.getoption("--forks")
    if number < 2 or session.config.option.collectonly or session.testsfailed:
        return None
    # Those of a file stay together, as they share what was started for them.
    files = [list(items) for _, items in groupby(session.items, key=lambda item: item.path)]
    parent = _Parent(session, files)
    try:
        parent.fork(min(number, len(files)))
        parent.listen()
    finally:
        parent.end()
    return True


class _Parent:
    """Gives files to processes, and takes their reports."""

    def __init__(self, session: pytest.Session, files: Files) -> None:
        self._session, self._files = session, files
        self._left = iter(range(len(files)))
        self._pids = dict[Connection, int]()
        self._current = dict[Connection, tuple[str, Any]]()
        """The test that each runs."""
        self._faults = dict[Connection, str]()
        """What ended them."""

    def fork(self, number: int) -> None:
        """Start so many processes."""
        assert forked.CONTEXT, "it says what to import for roles"
        forkserver.ensure_running()
        base = _folders(self._session.config).getbasetemp()
        for at in range(number):
            ours, theirs = Pipe()
            pid = os.fork()
            if not pid:
                for connection in (ours, *self._pids):
                    connection.close()
                _be_child(self._session, self._files, theirs, base / f"fork-{at}")
            theirs.close()
            self._pids[ours] = pid

    def end(self) -> None:
        """End processes that still run."""
        for pid in self._pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)

    def listen(self) -> None:
        """Return when all processes have ended."""
        while self._pids:
            for connection in wait(list(self._pids)):
                assert isinstance(connection, Connection)
                try:
                    kind, data = connection.recv()
                except EOFError:
                    self._ended(connection)
                else:
                    self._take(connection, kind, data)

    def _take(self, connection: Connection, kind: str, data: Any) -> None:
        hook = self._session.config.hook
        match kind:
            case "next":
                stop = self._session.shouldstop or self._session.shouldfail
                with suppress(BrokenPipeError):
                    connection.send(None if stop else next(self._left, None))
            case "start":
                self._current[connection] = data
                hook.pytest_runtest_logstart(nodeid=data[0], location=data[1])
            case "report":
                report = hook.pytest_report_from_serializable(config=self._session.config, data=data)
                hook.pytest_runtest_logreport(report=report)
            case "fault":
                self._faults[connection] = data
            case _:
                del self._current[connection]
                hook.pytest_runtest_logfinish(nodeid=data[0], location=data[1])

    def _ended(self, connection: Connection) -> None:
        _, status = os.waitpid(self._pids.pop(connection), 0)
        connection.close()
        code, current = os.waitstatus_to_exitcode(status), self._current.pop(connection, None)
        if code == 0:
            return
        name, location = current or ("the end of a process of tests", ("", None, ""))
        left = "; further tests of its file did not run" if current else ""
        why = f"the process ended with {code}{left}\n{self._faults.pop(connection, '')}"
        report = pytest.TestReport(name, location, {}, "failed", why, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)


def _be_child(session: pytest.Session, files: Files, connection: Connection, folder: Path) -> None:
    """Run tests in place of what the parent does, and end the process."""
    code = 1
    try:
        # What was registered belongs to the parent.
        atexit._clear()
        forked.share_server(forked.SERVER["_forkserver_address"])
        _set_up(session.config, connection, folder)
        _run(session, files, connection)
        for _ in range(2):
            gc.collect()
        collect_unraisable(session.config)
        atexit._run_exitfuncs()
        code = 0
    finally:
        if code:
            connection.send(("fault", traceback.format_exc()))
        os._exit(code)


def _set_up(config: pytest.Config, connection: Connection, folder: Path) -> None:
    """Let this process report to its parent, and write to files of its own."""
    manager = config.pluginmanager
    capture = manager.getplugin("capturemanager")
    assert capture
    capture.stop_global_capturing()
    capture.start_global_capturing()
    terminal = manager.getplugin("terminalreporter")
    manager.unregister(terminal)
    manager.register(_Terminal(terminal), "terminalreporter")
    manager.register(_Reporter(config, connection))
    folder.mkdir(mode=0o700)
    vars(_folders(config))["_basetemp"] = folder


def _folders(config: pytest.Config) -> pytest.TempPathFactory:
    found = vars(config)["_tmp_path_factory"]
    assert isinstance(found, pytest.TempPathFactory)
    return found


def _run(session: pytest.Session, files: Files, connection: Connection) -> None:
    def items() -> Iterator[pytest.Item]:
        while True:
            connection.send(("next", None))
            number = connection.recv()
            if number is None:
                return
            yield from files[number]

    coming = items()
    item = next(coming, None)
    while item is not None:
        # What only this test needs is ended with it, and everything with the last one.
        following = next(coming, None)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following


class _Terminal:
    """Where something is written that cannot be reported, such as the stacks of a test that hangs."""

    def __init__(self, terminal: Any) -> None:
        self._tw = vars(terminal)["_tw"]


class _Reporter:
    """Tells the parent what happens."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self._connection.send(("start", (nodeid, location)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        self._connection.send(("finish", (nodeid, location)))

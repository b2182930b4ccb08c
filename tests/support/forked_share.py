"""One process of a forked run: it takes file after file, and sends every report to the process that forked it."""

import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import pytest
from _pytest.config import create_terminal_writer

Location = tuple[str, int | None, str]


class Share:
    """What one process does.

    Args:
        session: The session that was forked, with all items.
        files: The items of each file.
        numbers: A pipe from which each process takes the number of its next file, four bytes at a time.
        reports: Where reports go.
        temporary: The folder for this process's `tmp_path`.
    """

    def __init__(
        self,
        session: pytest.Session,
        files: list[list[pytest.Item]],
        numbers: int,
        reports: Connection,
        temporary: Path,
    ) -> None:
        self._session = session
        self._files = files
        self._numbers = numbers
        self._reports = reports
        self._temporary = temporary

    def run(self) -> NoReturn:
        """Run files until there are none, stop what they started, and end the process."""
        code = 1
        try:
            self._settle_in()
            self._run_items()
            self._reports.send(("done", None))
            code = 0
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._session._setupstate.teardown_exact(None)  # else the servers stay
        except BaseException:
            self._reports.send(("broken", traceback.format_exc()))
            raise
        finally:
            # Whatever else was prepared for the end is for the end of the process that forked this one.
            os._exit(code)

    def _settle_in(self) -> None:
        config = self._session.config
        plugins = config.pluginmanager
        # Of what the tests write, each process keeps its own; none but the first process writes to the terminal.
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        plugins.unregister(name="terminalreporter")
        # pytest-timeout asks the terminal's reporter where to write stacks.
        self._tw = create_terminal_writer(config, sys.stderr)
        plugins.register(self, "terminalreporter")
        self._temporary.mkdir(mode=0o700)
        config._tmp_path_factory._basetemp = self._temporary  # type: ignore[attr-defined]

    def _run_items(self) -> None:
        while number := os.read(self._numbers, 4):
            items = self._files[int.from_bytes(number, "big")]
            # What follows decides which fixtures end with a test: with the last one of a file, all but the session's.
            for item, following in zip(items, [*items[1:], self._session], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self._session._setupstate.teardown_exact(None)

    def pytest_runtest_logstart(self, nodeid: str, location: Location) -> None:
        """Send that a test begins."""
        self._reports.send(("begins", (nodeid, location)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        config = self._session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        self._reports.send(("report", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: Location) -> None:
        """Send that a test is over."""
        self._reports.send(("ends", (nodeid, location)))

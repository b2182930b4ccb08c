"""A plugin of pytest: several processes take files of tests from one list, each when it has time for the next.

`python -m pytest -p tests.support.shared_list --take-from=LIST`, with one path a line in LIST. Each process that is
started so takes the first line, removes it, imports that file, runs its tests, and comes back.

pytest-xdist also gives files to processes, but each of its processes first imports all files: 3.6 seconds of a core for
tests/integration alone. They also look for garbage among all of that, again and again.
"""

import fcntl
import gc
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

APPEARS_SECONDS = 600.0
"""How long a list may take to appear: the packages that its tests need may still be loading."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--take-from",
        type=Path,
        metavar="LIST",
        help="take files of tests from the list in this file until it is empty",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> bool | None:
    """Collect nothing yet."""
    return True if session.config.option.take_from else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if not session.config.option.take_from:
        return None
    folders = _Folders(session)
    # Session fixtures stay when the tests of a file end, as other files follow.
    follows = _Follows.from_parent(session, name="the next file")
    collected = 0
    for file in _taken(session.config.option.take_from):
        items = folders.items(session.config.rootpath / file)
        collected += len(items)
        for item, following in pairwise([*items, follows]):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    session.testscollected = collected
    return True


@pytest.hookimpl
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Let a process succeed for which others left nothing."""
    if session.config.option.take_from and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def take(shared: Path) -> str | None:
    """Remove the first line of a list that other processes take lines from, too. Returns None if there is none."""
    with shared.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        first, *others = file.read().split("\n", 1)
        file.seek(0)
        file.truncate()
        file.writelines(others)
    return first or None


def _taken(shared: Path) -> Iterator[str]:
    until = time.monotonic() + APPEARS_SECONDS
    while not shared.exists():
        if time.monotonic() > until:
            raise pytest.UsageError(f"{shared} did not appear")
        time.sleep(0.1)
    while file := take(shared):
        yield file


class _Follows(pytest.Item):
    def runtest(self) -> None:
        """Never called: it only stands for the test after the last one of a file."""
        raise NotImplementedError


class _Folders:
    """Finds the tests of one file, and reads each folder on the way to it once, as pytest's fixtures need."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._root = session.config.rootpath
        self._found: dict[Path, pytest.Collector] = {}
        self._note([session.ihook.pytest_collect_directory(path=self._root, parent=session)])

    def items(self, file: Path) -> list[pytest.Item]:
        """Import a file. Returns its tests, without those that the command line leaves out.

        Python looks for garbage in what the file before this one made, and never again in what is there by then.
        """
        gc.collect()
        gc.disable()
        try:
            items = list(self._session.genitems(self._node(file)))
        finally:
            gc.freeze()
            gc.enable()
        config = self._session.config
        config.hook.pytest_collection_modifyitems(session=self._session, config=config, items=items)
        return items

    def _node(self, path: Path) -> pytest.Collector:
        if path not in self._found:
            if path == self._root:
                raise pytest.UsageError("no folder of tests")
            folder = self._node(path.parent)
            report = folder.ihook.pytest_make_collect_report(collector=folder)
            folder.ihook.pytest_collectreport(report=report)
            self._note(report.result)
            if path not in self._found:
                raise pytest.UsageError(f"{path} is no file of tests")
        return self._found[path]

    def _note(self, nodes: list[pytest.Item | pytest.Collector]) -> None:
        self._found.update((node.path, node) for node in nodes if isinstance(node, pytest.Collector))

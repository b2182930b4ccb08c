"""What a run of pytest is asked to note: its first failure, or which test runs which line."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

OTHER_ENGINES = ("valkey", "cluster")
"""The tests of the store repeat themselves on these; a mutant meets those on Redis and on the one in memory."""

_EXAMPLES = 10


class FirstFailure:
    """Notes which test failed first."""

    def __init__(self) -> None:
        self._killer = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._killer:
            self._killer = report.nodeid

    def result(self) -> dict[str, Any]:
        return {"killer": self._killer}


class Measurement:
    """Notes for each test the lines and Redis functions that it runs, its seconds, and whether it passes."""

    def __init__(self, files: list[str]) -> None:
        import coverage

        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=files)
        self._tests: dict[str, dict[str, Any]] = {}
        self._functions: set[str] = set()
        self._shortened: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        self._coverage.start()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        _note_functions(self._functions)
        for item in items:
            self._shortened[item.nodeid] = _shorten(item)
        others = [item for item in items if _engine(item) in OTHER_ENGINES]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        self._functions.clear()
        note = self._tests[item.nodeid] = {"passed": True, "lines": {}}
        wall, cpu = time.monotonic(), time.process_time()
        try:
            return (yield)
        finally:
            factor = self._shortened[item.nodeid]
            note["wall"], note["cpu"] = factor * (time.monotonic() - wall), factor * (time.process_time() - cpu)
            note["functions"], note["shortened"] = sorted(self._functions), factor > 1
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._tests[report.nodeid]["passed"] = False

    def result(self) -> dict[str, Any]:
        self._coverage.stop()
        data = self._coverage.get_data()
        here = Path.cwd()
        for file in data.measured_files():
            path = str(Path(file).relative_to(here))
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    if context:
                        self._tests[context]["lines"].setdefault(path, []).append(line)
        return {"tests": self._tests}


def _engine(item: pytest.Item) -> object:
    call = getattr(item, "callspec", None)
    return call.params.get("redis_engines", call.params.get("store")) if call else None


def _shorten(item: pytest.Item) -> float:
    """Let Hypothesis try few examples: they run the same lines. Returns how many times as many it tries else."""
    test = getattr(item, "obj", None)
    given: settings | None = getattr(test, "_hypothesis_internal_use_settings", None)
    if given is None or given.max_examples <= _EXAMPLES:
        return 1.0
    test._hypothesis_internal_use_settings = settings(given, max_examples=_EXAMPLES)
    return given.max_examples / _EXAMPLES


def _note_functions(noted: set[str]) -> None:
    """Note the Redis functions that the store calls from now on."""
    module = sys.modules.get("fleet.adapters.redis.client.functions")
    if module is None:
        return
    name = module.Functions.name

    def noting(functions: object, function: str) -> str:
        noted.add(function)
        return str(name(functions, function))

    module.Functions.name = noting

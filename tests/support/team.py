"""Runs pytest in several processes that take files of tests from one list (`shared_list`) and end when it is empty.

`python -m tests.support.team NAME PROCESSES FOLDER …` writes what process N shows to `FOLDER/NAME-N.shown`; all further
arguments go to pytest. The processes are forked from one that has imported the roles and their libraries, which takes
a second of a core. They fork roles from one process, too (`shared_forks`).
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tests.support.forked import die_with_parent
from tests.support.shared_forks import share_forks

PRELOADED = ("pytest", "hypothesis", "tests.support.preloaded")
ACCEPTED = "ignore:Module already imported so cannot be rewritten"
"""A warning of pytest: it explains no assertions of plugins that were imported before it. Ours are imported later."""


def main(name: str, processes: str, folder: str, *arguments: str) -> int:
    """Run the processes. Returns 1 if one of them failed, else 0."""
    # As the command `fleet` does (tests/conftest.py).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    share_forks(Path(folder) / f"{name}.forks")
    # What is imported before pytest starts has no coverage.
    if int(processes) > 1 and not any(one.startswith("--cov") for one in arguments):
        for module in PRELOADED:
            import_module(module)
    members = [_fork(f"{name}-{number}", Path(folder), arguments) for number in range(1, int(processes) + 1)]
    # All have to end before it is known that one failed.
    codes = [os.waitpid(member, 0)[1] for member in members]
    return int(any(codes))


def _fork(name: str, folder: Path, arguments: Sequence[str]) -> int:
    sys.stdout.flush()
    if member := os.fork():
        return member
    shown = os.open(folder / f"{name}.shown", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(shown, stream)
    os.close(shown)
    print("==", name, flush=True)
    die_with_parent()
    os.environ["COVERAGE_FILE"] = str(folder / f"coverage.{name}")
    import pytest

    sys.exit(int(pytest.main(["-W", ACCEPTED, "-o", f"cache_dir=.pytest_cache/{name}", *arguments])))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""A run over several processes says of every test what one process would say."""

import os
import re
import subprocess
import sys
from pathlib import Path

FIXTURES = """
import os
import pytest

@pytest.fixture(scope="session")
def served(request):
    yield os.getpid()
    request.config.rootpath.joinpath(f"stopped-{os.getpid()}").touch()
"""
PASSING = """
import os
import pytest

USED = []

@pytest.mark.parametrize("number", range(3))
def test_one_process_runs_a_file(served, number, tmp_path):
    USED.append(tmp_path)
    assert served == os.getpid() and len(USED) == number + 1 and tmp_path.is_dir()
"""
FAILING = """
import pytest

def test_fails():
    print("what it wrote")
    assert 1 + 1 == 3

@pytest.mark.skip(reason="no server")
def test_left_out(): ...

def test_passes(served): ...
"""
ENDING = """
import os

def test_ends_its_process():
    os._exit(3)
"""


def run(folder: Path, files: dict[str, str], *arguments: str) -> tuple[int, str]:
    settings = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
    for name, content in {"conftest.py": FIXTURES, "pytest.ini": settings, **files}.items():
        (folder / name).write_text(content)
    plugins = ["-p", "tests.support.forked_run", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", "-rs", *plugins, *arguments, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=dict(os.environ))
    return done.returncode, done.stdout + done.stderr


def test_every_result_arrives_and_every_process_stops_what_it_started(tmp_path: Path) -> None:
    files = {f"test_passing_{number}.py": PASSING for number in range(4)} | {"test_failing.py": FAILING}
    code, shown = run(tmp_path, files, "--processes", "2")
    assert code == 1
    assert re.search(r"1 failed, 13 passed, 1 skipped", shown), shown
    assert "what it wrote" in shown
    assert "assert (1 + 1) == 3" in shown
    assert re.search(r"SKIPPED \[1\] \S*test_failing.py:8: no server", shown)
    assert 1 <= len(list(tmp_path.glob("stopped-*"))) <= 2


def test_a_process_that_ends_early_fails_its_test_and_no_other(tmp_path: Path) -> None:
    files = {f"test_passing_{number}.py": PASSING for number in range(4)} | {"test_ending.py": ENDING}
    code, shown = run(tmp_path, files, "--processes", "2")
    assert code == 1
    assert re.search(r"1 failed, 12 passed", shown), shown
    assert re.search(r"test_ends_its_process _*\nprocess \d of this run ended here", shown), shown
    assert len(list(tmp_path.glob("stopped-*"))) == 1


def test_the_first_failure_ends_the_run_where_it_should_and_stops_what_runs(tmp_path: Path) -> None:
    waiting = "import threading\n\ndef test_waits(served):\n    threading.Event().wait()\n"
    failing = "def test_fails():\n    assert False\n"
    code, shown = run(tmp_path, {"test_a_waiting.py": waiting, "test_b_failing.py": failing}, "-x", "--processes", "2")
    assert code != 0
    assert "1 failed" in shown, shown

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.shared_list import take

ROOT = Path(__file__).parents[2]
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def server():
    print("started", file=open({log!r}, "a"))
    yield
    print("ended", file=open({log!r}, "a"))
"""
TESTS = """
def test_one(server):
    print("{name} one", file=open({log!r}, "a"))

def test_two():
    print("{name} two", file=open({log!r}, "a"))
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the tests of a small project, which lies beside it, note that they run."""
    log = tmp_path / "log"
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider --import-mode=importlib\n")
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    (tmp_path / "conftest.py").write_text(CONFTEST.format(log=str(log)))
    for name in ("first/test_a", "first/test_b", "second/test_c"):
        (tmp_path / f"{name}.py").write_text(TESTS.format(name=name, log=str(log)))
    return log


def started(log: Path, *arguments: str, command: Sequence[str] = ("pytest",)) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", *command, "-p", "tests.support.shared_list", *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "yes"}
    return subprocess.Popen(words, cwd=log.parent, env=environment, text=True, stdout=subprocess.PIPE)


def run(log: Path, *arguments: str) -> int:
    process = started(log, *arguments)
    print(process.communicate(timeout=120)[0])
    return process.returncode


def listed(folder: Path, name: str, *files: str) -> str:
    (folder / name).write_text("".join(f"{file}\n" for file in files))
    return f"--take-from={folder / name}"


def test_processes_run_each_file_of_their_list_once(log: Path) -> None:
    shared = listed(log.parent, "all", "first/test_a.py", "second/test_c.py", "first/test_b.py")
    both = [started(log, shared), started(log, shared)]
    shown = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], shown
    ran = [line for line in log.read_text().splitlines() if " " in line]
    files = ("first/test_a", "first/test_b", "second/test_c")
    assert sorted(ran) == sorted(f"{file} {test}" for file in files for test in ("one", "two"))


def test_a_team_runs_each_file_once_and_shows_what_each_of_its_processes_showed(log: Path) -> None:
    (log.parent / "first/test_wrong.py").write_text("def test_three():\n    assert False\n")
    files = ("first/test_a", "first/test_wrong", "second/test_c", "first/test_b")
    shared = listed(log.parent, "all", *(f"{file}.py" for file in files))
    team = started(log, shared, command=("tests.support.team", "crowd", "2", str(log.parent)))
    assert (team.wait(240), team.communicate()[0]) == (1, "")
    ran = [line for line in log.read_text().splitlines() if " " in line]
    assert sorted(ran) == sorted(f"{file} {test}" for file in files if "wrong" not in file for test in ("one", "two"))
    shown = [(log.parent / f"crowd-{number}.shown").read_text() for number in (1, 2)]
    assert [text.splitlines()[0] for text in shown] == ["== crowd-1", "== crowd-2"]
    assert ["test_three" in text for text in shown].count(True) == 1


def test_what_a_process_started_for_all_its_files_stays_to_the_end(log: Path) -> None:
    assert run(log, listed(log.parent, "all", "first/test_a.py", "second/test_c.py"), "-k", "one") == 0
    assert log.read_text().splitlines() == ["started", "first/test_a one", "second/test_c one", "ended"]


def test_a_process_for_which_nothing_is_left_succeeds(log: Path) -> None:
    assert run(log, listed(log.parent, "none")) == 0


def test_failures_are_told_and_other_files_run(log: Path) -> None:
    (log.parent / "first/test_wrong.py").write_text("def test_three():\n    assert False\n")
    (log.parent / "first/test_broken.py").write_text("import no_such_module\n")
    for failing in ("first/test_wrong.py", "first/test_broken.py"):
        assert run(log, listed(log.parent, "all", failing, "first/test_a.py"), "-k", "two or three") == 1
    assert log.read_text().splitlines() == ["first/test_a two"] * 2


def test_a_file_that_is_not_there_fails(log: Path) -> None:
    assert run(log, listed(log.parent, "all", "first/test_nothing.py")) == pytest.ExitCode.USAGE_ERROR


def test_a_list_is_taken_from_its_beginning(tmp_path: Path) -> None:
    listed(tmp_path, "list", "a", "b")
    assert [take(tmp_path / "list") for _ in range(3)] == ["a", "b", None]

"""Processes of a run that are forked hide nothing that went wrong in one of them."""

import re
import subprocess
import sys
from pathlib import Path

LIMIT = 240
FILES = {
    "test_passes.py": "def test_passes(tmp_path): (tmp_path / 'x').touch()\ndef test_passes_too(): pass\n",
    "test_fails.py": "def test_fails():\n    print('said')\n    assert 1 == 2\n",
    "test_fixture.py": (
        "import pytest\n@pytest.fixture(scope='session')\ndef left():\n"
        "    yield\n    raise RuntimeError('at its end')\ndef test_uses(left): pass\n"
    ),
}
DIES = "import os\ndef test_dies(): os.kill(os.getpid(), 9)\ndef test_after(): pass\n"
LEAVES = (
    "class Left:\n    def __init__(self): self.me = self\n    def __del__(self): raise ValueError('unseen')\n"
    "def test_leaves(): Left()\n"
)


def run(folder: Path, **files: str) -> tuple[int, str]:
    """Run files of tests in two processes."""
    for name, text in files.items():
        (folder / name).write_text(text)
    options = ("-c", "/dev/null", "--rootdir", str(folder), "-p", "no:cacheprovider", "-rA", "--timeout", "120")
    strict = ("-W", "error", "-o", "asyncio_default_fixture_loop_scope=function")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.forked_runs", "--forks", "2", *options]
    done = subprocess.run([*command, *strict, str(folder)], capture_output=True, text=True, timeout=LIMIT, check=False)
    return done.returncode, done.stdout + done.stderr


def test_what_fails_is_told_as_without_processes(tmp_path: Path) -> None:
    code, shown = run(tmp_path, **FILES)
    assert code == 1, shown
    told = set(re.findall(r"^(PASSED|FAILED|ERROR) \S*::(\w+)", shown, re.MULTILINE))
    passed = {("PASSED", name) for name in ("test_passes", "test_passes_too", "test_uses")}
    assert told == passed | {("FAILED", "test_fails"), ("ERROR", "test_uses")}, shown
    assert "assert 1 == 2" in shown and "said" in shown and "at its end" in shown, shown


def test_a_process_that_dies_or_leaves_an_error_to_the_end_fails_the_run(tmp_path: Path) -> None:
    code, shown = run(tmp_path, **{"test_dies.py": DIES})
    assert code == 1 and "test_dies" in shown and "ended with -9" in shown, shown
    (tmp_path / "test_dies.py").unlink()
    code, shown = run(tmp_path, **{"test_leaves.py": LEAVES})
    assert code == 1 and "unseen" in shown, shown


def test_a_run_without_faults_succeeds(tmp_path: Path) -> None:
    code, shown = run(
        tmp_path, **{"test_passes.py": FILES["test_passes.py"], "test_more.py": "def test_more(): pass\n"}
    )
    assert code == 0 and "3 passed" in shown, shown

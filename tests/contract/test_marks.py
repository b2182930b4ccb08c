"""`scripts/test` looks for the tests in real time in some folders only: each of them is there."""

import re
from pathlib import Path

from tests.support.every import for_every

ROOT = Path(__file__).parents[2]
SCRIPT = (ROOT / "scripts" / "test").read_text(encoding="utf-8")
RUNS = {"conformance": "conformance", "conversation": "conversations", "gapless": "gapless", "scripted": "scripted"}
"""The function of `scripts/test` that runs the tests with a mark."""
MARKED = re.compile(rf"pytest\.mark\.({'|'.join(RUNS)})\b")


def marked() -> list[tuple[str, str]]:
    """Return the files of tests in real time, each with a mark that it has."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        (str(file.relative_to(ROOT)), mark)
        for file in files
        for mark in sorted(set(MARKED.findall(file.read_text(encoding="utf-8"))))
    ]


def places(run: str) -> list[str]:
    """Return where a function of the script looks for tests."""
    found = re.search(rf"^{run}\(\) \{{(.*?)\}}$", SCRIPT, re.MULTILINE | re.DOTALL)
    assert found, run
    return re.findall(r"tests/[\w/.]*\w", found[1])


@for_every("file, mark", marked)
def test_the_run_of_its_mark_has_the_file(file: str, mark: str) -> None:
    assert any(file == place or file.startswith(f"{place}/") for place in places(RUNS[mark]))

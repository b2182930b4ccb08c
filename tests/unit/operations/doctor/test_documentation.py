"""Every check is explained where people are sent."""

import re
from pathlib import Path

import pytest

from fleet.operations.doctor.examination import PARTS
from tests.support.every import for_every

ROOT = Path(__file__).parents[4]
FOLDERS = ("operations/doctor", "roles/control/doctor")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / "fleet" / folder).glob("*.py"))
_CHECK = re.compile(
    r'"((?:settings|broker|redis|roles|api|session|audio|models|certificates|clock|machine|device)\.[a-z]+)"'
)

OPEN = {"session.unfinished"}
"""Each part may end so."""
CHECKS = sorted({check for path in SOURCES for check in _CHECK.findall(path.read_text(encoding="utf-8"))} - OPEN)
DOCUMENT = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")


@for_every("check", CHECKS)
def test_the_check_is_explained(check: str) -> None:
    assert f"`{check}`" in DOCUMENT


def test_nothing_is_explained_that_is_no_check() -> None:
    told = set(re.findall(r"^\| `([a-z]+\.[a-z]+)`", DOCUMENT, re.MULTILINE))
    assert told - set(CHECKS) == set()
    assert len(CHECKS) > 35


@pytest.mark.parametrize("part", sorted(PARTS))
def test_the_part_is_named(part: str) -> None:
    assert f"`{part}`" in DOCUMENT

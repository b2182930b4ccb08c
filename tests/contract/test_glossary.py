"""The glossary's table of places names files and symbols that are there."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.every import for_every

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
PLACES = re.findall(r"`(fleet/[\w/.]+)(?:::(\w+))?`", PAGE)


@for_every("path, name", PLACES)
def test_a_place_is_there(path: str, name: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    if name:
        defined = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        assert name in {node.name for node in ast.parse(text).body if isinstance(node, defined)}


def test_the_table_has_places() -> None:
    assert len(PLACES) > 20


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_the_glossary_is_linked(page: str) -> None:
    assert "glossary.md" in (ROOT / page).read_text(encoding="utf-8")


def test_a_term_stands_once() -> None:
    terms = [term for row in re.findall(r"^\| ([^|]+) \|", PAGE.partition("## Where is")[0], re.M) for term in [row]]
    kept = [term for term in terms if term != "term"]
    assert len(kept) == len(set(kept))

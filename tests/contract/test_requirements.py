"""Every statement of the protocols has a test that proves it, and every proof has a statement.

The tables are the rows `| ID | statement | tests |` of docs/protocol/*.md, the proofs the marks `requirement("ID", …)`.
Both are only read: no test is imported or run.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.every import for_every

ROOT = Path(__file__).parent.parent.parent
TABLES = ROOT / "docs" / "protocol"
TESTS = ROOT / "tests"
CHECKS = ROOT / "fleet" / "workbench" / "conformance" / "checks"
MARK = "requirement"

_ROW = re.compile(r"^\|\s*([A-Z]+-\d+)\s*\|(.*)\|([^|]*)\|\s*$")
_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)(?:\[([\w,\s]+)\])?")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Row:
    """One statement of a table."""

    table: str
    id: str
    statement: str
    tests: tuple[str, ...]
    """As `tests/path.py::test_name`."""
    checks: tuple[str, ...]
    """Checks of the device contract that a test runs by their ids."""


def rows() -> Iterator[Row]:
    for table in sorted(TABLES.glob("*.md")):
        for line in table.read_text(encoding="utf-8").splitlines():
            if found := _ROW.match(line):
                named = _TEST.findall(found[3])
                checks = tuple(check.strip() for *_, inner in named for check in inner.split(",") if check.strip())
                tests = tuple(f"{path}::{name}" for path, name, _ in named)
                yield Row(table.name, found[1], found[2].strip(), tests, checks)


def marks() -> dict[str, set[str]]:
    """Return the ids that each test is marked with; a mark without a text as its id counts as the id `?`."""
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        module = ast.parse(source) if MARK in source else ast.Module([], [])
        everywhere = [id_ for node in module.body if isinstance(node, ast.Assign) for id_ in ids(node)]
        for node in ast.walk(module):
            if isinstance(node, Function) and node.name.startswith("test"):
                own = [id_ for decorator in node.decorator_list for id_ in ids(decorator)]
                found[f"{path.relative_to(ROOT).as_posix()}::{node.name}"] = {*own, *everywhere}
    return {test: named for test, named in found.items() if named}


def ids(node: ast.AST) -> Iterator[str]:
    """Yield the ids of every mark in a decorator, a parameter set's `marks=` or a `pytestmark`."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == MARK:
            yield from (str(one.value) if isinstance(one, ast.Constant) else "?" for one in call.args)


@functools.cache
def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, Function)}


ROWS = list(rows())
MARKS = marks()
WHERE: dict[str, set[str]] = defaultdict(set)
for _name, _ids in MARKS.items():
    for _id in _ids:
        WHERE[_id].add(_name)


def test_every_protocol_has_a_table() -> None:
    assert {row.table for row in ROWS} >= {"gateway.md", "xiaozhi.md"}


def test_every_id_is_used_once_and_says_something() -> None:
    found = [row.id for row in ROWS]
    assert sorted({id_ for id_ in found if found.count(id_) > 1}) == []
    assert [row.id for row in ROWS if len(row.statement) < 10] == []


@for_every("row", ROWS)
def test_a_statement_is_proven_by_the_tests_that_it_names(row: Row) -> None:
    assert row.tests, "names no test"
    for test in row.tests:
        path, name = test.split("::")
        assert (ROOT / path).is_file(), f"{path} does not exist"
        assert name in functions(ROOT / path), f"there is no {test}"
    assert set(row.tests) == WHERE[row.id], "the tests with the mark are those of the row"


def test_every_check_that_a_row_names_exists() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in CHECKS.glob("*.py"))
    known = set(re.findall(r"""GROUP\.check\(\s*["'](\w+)["']""", source))
    assert {check for row in ROWS for check in row.checks} - known == set()


def test_every_mark_belongs_to_a_row() -> None:
    known = {row.id for row in ROWS}
    assert {id_: sorted(where) for id_, where in WHERE.items() if id_ not in known} == {}

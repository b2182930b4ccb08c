"""Which tests run which line, and in what order a mutant meets them."""

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants.mutant import Mutant, digest
from tests.mutants.project import Copy, Project

UNIT, INTEGRATION = "tests/unit/", "tests/integration/"
_FUNCTION = re.compile(r"^(?:local )?function (\w+)|^local (\w+) = function", re.MULTILINE)
_REGISTERED = re.compile(r"register_function\('(\w+)', (\w+)\)")


@dataclass(frozen=True, slots=True)
class Test:
    """A test: its name for pytest, the seconds it takes, and the Redis functions that it calls."""

    __test__ = False

    name: str
    seconds: float
    functions: frozenset[str]


@dataclass(slots=True)
class Coverage:
    """The tests of a project by the lines that they run; measured file by file, and kept until one of them changes."""

    project: Project
    place: Path
    _by_line: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    _by_file: dict[str, set[str]] = field(default_factory=dict)
    _anywhere: dict[str, set[str]] = field(default_factory=dict)
    """Tests that tried few examples when they were measured: they may run any line of a file that they run at all."""
    tests: dict[str, Test] = field(default_factory=dict)
    failing: list[str] = field(default_factory=list)

    def stale(self) -> list[str]:
        """Return the files of tests that were not measured as they are now, or not when they passed."""
        return [path for path in self.project.test_files() if not self._is_fresh(path)]

    def measure(self, path: str, copy: Copy, seconds: float) -> None:
        """Run a file of tests and keep what its tests run; of a run without an end nothing."""
        rooms = [str(copy.tree / room / "*") for room in self.project.rooms]
        answer = copy.run([path], seconds, 10 * seconds, measure=rooms)
        if "tests" not in answer:
            self._file_of(path).unlink(missing_ok=True)
            return
        tests: dict[str, Any] = answer["tests"]
        touched = {file for note in tests.values() for file in note["lines"]}
        kept = {
            "digest": self.project.digest_of(path),
            "files": {file: self.project.digest_of(file) for file in sorted(touched)},
            "tests": tests,
        }
        self._file_of(path).write_text(json.dumps(kept), encoding="utf-8")

    def load(self) -> None:
        """Read what was measured."""
        for path in self.project.test_files():
            if not self._file_of(path).is_file():
                self.failing.append(path)
            for name, note in self._kept(path).get("tests", {}).items():
                if not note["passed"]:
                    self.failing.append(name)
                    continue
                self.tests[name] = Test(name, note["cpu"] + note["wall"] / 10, frozenset(note["functions"]))
                for file, lines in note["lines"].items():
                    self._by_file.setdefault(file, set()).add(name)
                    if note.get("shortened"):
                        self._anywhere.setdefault(file, set()).add(name)
                    for line in lines:
                        self._by_line.setdefault((file, line), set()).add(name)

    def of(self, mutant: Mutant) -> list[Test]:
        """Return the tests that run a mutant's lines; for lines that run at import those that run the file."""
        if mutant.path.endswith(".lua"):
            return self._of_functions(mutant)
        source = (self.project.root / mutant.path).read_text(encoding="utf-8")
        spans = _around(ast.parse(source), mutant.first, mutant.last)
        # A line that runs at import is noted for the test alone that was the first to import the file, if for any.
        names = set() if spans else self._by_file.get(mutant.path, set()) | self._of_twins(mutant)
        for first, last in ((mutant.first, mutant.last), *spans) if spans else ():
            names = {name for line in range(first, last + 1) for name in self._by_line.get((mutant.path, line), ())}
            if names:
                break
        return [self.tests[name] for name in names | self._anywhere.get(mutant.path, set())]

    def digest_of(self, mutant: Mutant) -> str:
        """Return what the tests that run a mutant's lines come to: their names and their files."""
        names = sorted(test.name for test in self.of(mutant))
        files = sorted({name.partition("::")[0] for name in names})
        return digest("|".join((*names, *(self.project.digest_of(path) for path in files))))

    def _of_twins(self, mutant: Mutant) -> set[str]:
        twins = _twins(mutant)
        return {name for name in self.tests if name.partition("::")[0] in twins}

    def _of_functions(self, mutant: Mutant) -> list[Test]:
        wanted = functions_above((self.project.root / mutant.path).read_text(encoding="utf-8"), mutant.first)
        return [test for test in self.tests.values() if test.functions & wanted]

    def _is_fresh(self, path: str) -> bool:
        kept = self._kept(path)
        return (
            kept.get("digest") == self.project.digest_of(path)
            and all(self.project.digest_of(file) == known for file, known in kept["files"].items())
            and all(note["passed"] for note in kept["tests"].values())
        )

    def _kept(self, path: str) -> dict[str, Any]:
        file = self._file_of(path)
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def _file_of(self, path: str) -> Path:
        self.place.mkdir(parents=True, exist_ok=True)
        return self.place / f"{digest(path)}.json"


def _around(module: ast.Module, first: int, last: int) -> list[tuple[int, int]]:
    """Return the innermost statement around lines of a function, then the function's body; nothing outside of one."""
    spans: list[tuple[int, int]] = []
    for node in ast.walk(module):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = (node.body[0].lineno, node.end_lineno or 0)
        if body[0] <= first and last <= body[1]:
            inner = [
                (part.lineno, part.end_lineno or 0)
                for part in ast.walk(node)
                if isinstance(part, ast.stmt) and part is not node and part.lineno <= first
            ]
            holding = [span for span in inner if last <= span[1]]
            spans = [min(holding, key=lambda span: span[1] - span[0], default=body), body]
    return spans


def functions_above(source: str, line: int) -> set[str]:
    """Return the registered functions of a Lua library that reach a line, by the names that each function mentions."""
    starts = [(source.count("\n", 0, found.start()) + 1, found) for found in _FUNCTION.finditer(source)]
    bodies = {}
    for (start, found), (stop, _) in zip(starts, [*starts[1:], (source.count("\n") + 2, None)], strict=True):
        bodies[found[1] or found[2]] = (start, stop, "\n".join(source.splitlines()[start - 1 : stop - 1]))
    reached = {name for name, (start, stop, _) in bodies.items() if start <= line < stop}
    grown = True
    while grown:
        above = {
            name
            for name, (_, _, body) in bodies.items()
            if any(re.search(rf"\b{inner}\(", body) for inner in reached - {name})
        }
        grown = not above <= reached
        reached |= above
    registered = dict(_REGISTERED.findall(source))
    return {name for name, function in registered.items() if function in reached} or set(registered)


def stages(mutant: Mutant, tests: Iterable[Test], seconds: float) -> list[list[Test]]:
    """Return unit tests, then the others; nearest first, quick before slow, as many as fit in `seconds` per stage."""
    rooms, twins = (f"{UNIT}{mutant.room.removeprefix('fleet/')}/", _near(mutant)), _twins(mutant)

    def rank(test: Test) -> tuple[int, float]:
        path = test.name.partition("::")[0]
        return (0 if path in twins else 1 if path.startswith(rooms) else 2), test.seconds

    unit, others = [], []
    for test in tests:
        (unit if test.name.startswith(UNIT) else others).append(test)
    return [
        stage
        for stage in (_fitting(sorted(unit, key=rank), seconds), _fitting(sorted(others, key=rank), seconds))
        if stage
    ]


def _near(mutant: Mutant) -> str:
    """Return the folder of the integration tests of a mutant's room."""
    return f"{INTEGRATION}{'redis' if mutant.path.endswith('.lua') else mutant.room.rpartition('/')[2]}/"


def _twins(mutant: Mutant) -> tuple[str, str]:
    """Return the files of tests that are named after a mutant's file; they may not exist."""
    folder, _, file = mutant.path.removeprefix("fleet/").rpartition("/")
    return f"{UNIT}{folder}/test_{file}", f"{_near(mutant)}test_{file}"


def _fitting(tests: list[Test], seconds: float) -> list[Test]:
    fitting, sum_ = [], 0.0
    for test in tests:
        if fitting and sum_ + test.seconds > seconds:
            continue
        sum_ += test.seconds
        fitting.append(test)
    return fitting

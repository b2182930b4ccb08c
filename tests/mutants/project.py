"""A project under mutation, and its copies: nothing is ever changed in the checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.mutants.mutant import Mutant, digest

ARGUMENTS = (
    *(
        "-x",
        "-q",
        "--no-header",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ),
    *("-m", "not speech and not conversation and not conformance and not slow", "--hypothesis-seed=0"),
)


@dataclass(frozen=True, slots=True)
class Project:
    """What is changed and what should notice. Paths are relative to `root`.

    `libraries` are imported once, not by every run of the tests; none of them may import the project.
    """

    root: Path
    rooms: tuple[str, ...]
    tests: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ARGUMENTS

    def files(self) -> list[str]:
        """Return all files: of a checkout also those that are not committed, of a copy all but compiled ones."""
        if not (self.root / ".git").exists():
            found = [path for path in self.root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
            return sorted(str(path.relative_to(self.root)) for path in found)
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        return sorted({path for path in listed if (self.root / path).is_file()})

    def sources(self) -> list[str]:
        """Return the Python files that are changed."""
        return [path for path in self.files() if path.endswith(".py") and path.startswith(self.rooms)]

    def test_files(self) -> list[str]:
        """Return the files of tests that a mutant may meet, folder by folder."""
        files = self.files()
        return [
            path
            for folder in self.tests
            for path in files
            if path.startswith(folder) and path.endswith(".py") and path.rpartition("/")[2].startswith("test_")
        ]

    def digest_of(self, path: str) -> str:
        file = self.root / path
        return digest(file.read_text(encoding="utf-8")) if file.is_file() else ""

    def digest_of_helpers(self) -> str:
        """Return what the files that tests share come to."""
        helpers = [path for path in self.files() if re.fullmatch(r"tests/(.*/)?(?!test_)\w+\.py", path)]
        return digest("".join(self.digest_of(path) for path in helpers))


def take_over(project: Project, tree: Path) -> Project:
    """Make a directory equal to a project and return it as a project; what did not change keeps its compiled form."""
    wanted = set(project.files())
    for path in wanted:
        source, target = project.root / path, tree / path
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            _drop_compiled(target)
    for file in [*tree.rglob("*.py"), *tree.rglob("*.lua")]:
        if str(file.relative_to(tree)) not in wanted:
            file.unlink()
    return replace(project, root=tree)


@dataclass(slots=True)
class Copy:
    """A copy of the project in a directory of its own, with a process that runs its tests.

    That process inherits `lock`, so whoever waits for it finds no process of an earlier campaign in the copy.
    """

    project: Project
    place: Path
    lock: int
    _process: subprocess.Popen[str] | None = None

    @property
    def tree(self) -> Path:
        return self.place / "tree"

    def run(self, tests: list[str], cpu: float, wall: float, measure: list[str] | None = None) -> dict[str, Any]:
        """Run tests in a fork; returns its `code` and what it noted, or nothing when it did not come to an end.

        Raises EOFError when the process that forks is gone: then nothing is known about the tests.
        """
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
        arguments = [argument for argument in self.project.arguments if measure is None or argument != "-x"]
        request = {
            "tests": tests,
            "arguments": [*arguments, f"--basetemp={self.place / 't'}"],
            "cpu": max(1, round(cpu)),
            "wall": wall,
            "measure": measure,
            "log": str(self.place / "log"),
            "answer": str(self.place / "answer"),
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"the process that runs tests in {self.place} was ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def put(self, mutant: Mutant) -> None:
        """Change the copy's file."""
        target = self.tree / mutant.path
        target.write_text(mutant.source, encoding="utf-8")
        _drop_compiled(target)

    def restore(self, mutant: Mutant) -> None:
        target = self.tree / mutant.path
        shutil.copyfile(self.project.root / mutant.path, target)
        _drop_compiled(target)

    def close(self) -> None:
        if self._process is not None:
            with self._process:
                assert self._process.stdin is not None
                self._process.stdin.close()

    def _start(self) -> subprocess.Popen[str]:
        here = Path(sys.executable).parent
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.tree}:{Path(__file__).parents[2]}",
            "PATH": f"{here}:{os.environ['PATH']}:/usr/local/sbin:/usr/sbin:/sbin",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.forks", "pytest", "hypothesis", *self.project.libraries],
            cwd=self.tree,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(self.lock,),
        )


def _drop_compiled(source: Path) -> None:
    """A file of the same length written in the same second would pass for the one that was compiled."""
    for compiled in (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"):
        compiled.unlink(missing_ok=True)

"""Draws mutants, runs the tests against each, and reports which survived. `scripts/mutants` starts it.

It can be stopped at any time and goes on where it was. A result is used again as long as it is true: a kill until the
changed file or the test that noticed changes, a survival until the changed file, one of the tests that run the changed
lines, or what tests share changes.
"""

import argparse
import fcntl
import json
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from tests.mutants.lists import accepted, lua_mutants
from tests.mutants.mutant import Mutant, digest
from tests.mutants.operators import sample
from tests.mutants.project import Copy, Project, take_over
from tests.mutants.report import KILLED, SURVIVED, TIMEOUT, Result, report
from tests.mutants.selection import Coverage, Test, stages

ROOT = Path(__file__).parents[2]
FLEET = Project(
    ROOT,
    rooms=("fleet/core/", "fleet/roles/worker/", "fleet/adapters/redis/"),
    tests=(
        *("tests/unit/core/", "tests/unit/roles/worker/", "tests/unit/adapters/redis/"),
        *("tests/integration/redis/", "tests/integration/worker/"),
        # Not their folders: what starts processes of its own cannot be measured.
        *("tests/integration/api/test_", "tests/integration/gateway/test_"),
    ),
    libraries=(
        *(
            "numpy",
            "redis.asyncio",
            "pydantic",
            "pydantic_settings",
            "openai",
            "mcp",
            "fastapi",
            "uvicorn",
            "websockets",
        ),
        *(
            "httpx2",
            "cryptography.hazmat.primitives.ciphers",
            "opentelemetry.sdk.trace",
            "aiomqtt",
            "prometheus_client",
        ),
        *("typer", "rich", "uvloop", "coverage", "unittest.mock", "zoneinfo"),
    ),
)
STAGE_SECONDS = 30.0
"""How long the tests of one stage may take together when nothing else runs; the slowest of more are left out."""
MEASURE_SECONDS = 300.0
SPARE_CPU, SPARE_WALL = 15.0, 60.0
"""Seconds that a run may take beyond three times the processor time (ten times for the clock) of its tests."""

T = TypeVar("T")


@dataclass(slots=True)
class Campaign:
    """Runs the tests of a project against mutants, on as many copies as there are jobs, and keeps every result."""

    project: Project
    place: Path
    jobs: int = 2
    say: Callable[[str], None] = print
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, mutants: list[Mutant]) -> list[Result]:
        """Return one result for each mutant, in the same order."""
        lock = os.open(self.place / "lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The checkout may be edited meanwhile.
        self.project = take_over(self.project, self.place / "checkout")
        coverage = Coverage(self.project, self.place / "coverage")
        copies = [Copy(self.project, self.place / str(number), lock) for number in range(self.jobs)]
        try:
            for copy in copies:
                take_over(self.project, copy.tree)
            self._each(
                "measured", coverage.stale(), copies, lambda path, copy: coverage.measure(path, copy, MEASURE_SECONDS)
            )
            coverage.load()
            for name in coverage.failing:
                self.say(f"left out, as it does not pass without any mutant: {name}")
            return self._judge_all(mutants, coverage, copies)
        finally:
            for copy in copies:
                copy.close()
            os.close(lock)

    def _judge_all(self, mutants: list[Mutant], coverage: Coverage, copies: list[Copy]) -> list[Result]:
        shared = self.project.digest_of_helpers()

        def state_of(mutant: Mutant) -> str:
            return digest(f"{shared} {coverage.digest_of(mutant)}")

        known = self._known(mutants, state_of)
        self.say(f"{len(known)} of {len(mutants)} results are known")

        def act(mutant: Mutant, copy: Copy) -> None:
            result = known[mutant.name] = _judge(mutant, coverage.of(mutant), copy)
            self._keep(result, state_of(mutant))
            if result.outcome != KILLED:
                self.say(f"{result.outcome}: {mutant.name}")

        self._each("done", [mutant for mutant in mutants if mutant.name not in known], copies, act)
        return [known[mutant.name] for mutant in mutants]

    def _each(self, what: str, items: list[T], copies: list[Copy], act: Callable[[T, Copy], None]) -> None:
        """Do something with every item, one after the other on each copy."""
        waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
        for item in items:
            waiting.put(item)

        def work(copy: Copy) -> None:
            with suppress(queue.Empty):
                while True:
                    act(waiting.get_nowait(), copy)
                    left = waiting.qsize()
                    if left % 25 == 0:
                        self.say(f"{len(items) - left} of {len(items)} {what}")

        with ThreadPoolExecutor(len(copies)) as threads:
            for done in [threads.submit(work, copy) for copy in copies]:
                done.result()

    def _known(self, mutants: list[Mutant], state_of: Callable[[Mutant], str]) -> dict[str, Result]:
        file = self.place / "results.jsonl"
        kept = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
            note = json.loads(line)
            kept[note["name"]] = note
        known = {}
        for mutant in mutants:
            note = kept.get(mutant.name)
            if note and note["original"] == mutant.original and self._still_true(note, mutant, state_of):
                known[mutant.name] = Result(mutant, note["outcome"], note["killer"], note["seconds"])
        return known

    def _still_true(self, note: dict[str, str], mutant: Mutant, state_of: Callable[[Mutant], str]) -> bool:
        if note["outcome"] == KILLED:
            return note["killed_by"] == self._digest_of_killer(note["killer"])
        return note["state"] == state_of(mutant)

    def _keep(self, result: Result, state: str) -> None:
        note = {
            "name": result.mutant.name,
            "original": result.mutant.original,
            "outcome": result.outcome,
            "killer": result.killer,
            "killed_by": self._digest_of_killer(result.killer),
            "seconds": result.seconds,
            "state": state,
        }
        with self._lock, (self.place / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(note, ensure_ascii=False) + "\n")

    def _digest_of_killer(self, test: str) -> str:
        return self.project.digest_of(test.partition("::")[0])


def _judge(mutant: Mutant, tests: list[Test], copy: Copy) -> Result:
    began = time.monotonic()
    copy.put(mutant)
    try:
        for stage in stages(mutant, tests, STAGE_SECONDS):
            outcome, killer = _meet(stage, copy)
            if outcome != SURVIVED:
                return Result(mutant, outcome, killer, time.monotonic() - began)
    finally:
        copy.restore(mutant)
    return Result(mutant, SURVIVED, "" if tests else "no test runs it", time.monotonic() - began)


def _meet(stage: list[Test], copy: Copy) -> tuple[str, str]:
    """Run tests in one process; a failure among servers counts when it comes again alone."""
    left = stage
    while left:
        seconds = sum(test.seconds for test in left)
        answer = copy.run([test.name for test in left], 3 * seconds + SPARE_CPU, 10 * seconds + SPARE_WALL)
        if "code" not in answer:
            return TIMEOUT, left[0].name
        if answer["code"] in (0, 5):
            return SURVIVED, ""
        killer = answer["killer"] or left[0].name
        if not answer["killer"] or killer.startswith("tests/unit/") or _fails_again(killer, copy):
            return KILLED, killer
        left = [test for test in left if test.name != killer]
    return SURVIVED, ""


def _fails_again(test: str, copy: Copy) -> bool:
    return copy.run([test], SPARE_CPU, SPARE_WALL).get("code") not in (0, 5)


def _sample(project: Project, place: Path, size: int, seed: str) -> list[Mutant]:
    """Return the sample, which takes half a minute to draw, from the last start if nothing changed since."""
    if not size:
        return []
    files = ("tests/mutants/operators.py", "tests/mutants/mutant.py", *project.sources())
    key = "|".join((str(size), seed, *(f"{path} {project.digest_of(path)}" for path in files)))
    file = place / f"sample-{digest(key)}.json"
    if not file.is_file():
        drawn = sample(project.root, project.sources(), size, seed)
        file.write_text(json.dumps([asdict(mutant) for mutant in drawn]), encoding="utf-8")
    return [Mutant(**fields) for fields in json.loads(file.read_text(encoding="utf-8"))]


def main() -> int:
    """Run what the command line asks for; 1 when too few are killed or a survivor is not on the list."""
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__)
    parser.add_argument("--size", type=int, default=500, help="mutants of Python files (500)")
    parser.add_argument("--seed", default="1", help="another seed draws another sample")
    parser.add_argument("--jobs", type=int, default=2, help="copies that run tests side by side (2)")
    parser.add_argument("--only", default="", metavar="PATH", help="only mutants whose path starts so")
    parser.add_argument("--tests", nargs="+", default=FLEET.tests, metavar="PATH", help="only the tests below these")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()) / "fleet-mutants", help="for results")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    options = parser.parse_args()
    options.dir.mkdir(parents=True, exist_ok=True)
    project = replace(FLEET, tests=tuple(options.tests))
    mutants = [*lua_mutants(ROOT), *_sample(project, options.dir, options.size, options.seed)]
    chosen = [mutant for mutant in mutants if mutant.path.startswith(options.only)]
    if options.list:
        print(*(mutant.name for mutant in chosen), sep="\n")
        return 0
    began = time.monotonic()
    results = Campaign(project, options.dir, options.jobs, lambda text: print(text, flush=True)).run(chosen)
    text, good = report(results, accepted())
    print(f"{text}\n{time.monotonic() - began:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

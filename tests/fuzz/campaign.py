"""A long fuzz run: a million inputs, or as many as are asked for, over all targets.

Each input follows from the seed, its target and its number alone, so a failure can be repeated without its input.
"""

import argparse
import gc
import logging
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

BATCH = 2000
SLOWEST = 10.0
"""Seconds of computing that one input may take."""
MOST_MEMORY = 3 * 1024**3
"""Bytes of addresses that one process may use: memory without a bound becomes a failure with an input."""
MOST_GROWTH = 64 * 1024**2
"""Bytes by which a process may grow after its first third: what codecs keep for good."""
LONGEST_LITERAL = 4000


class TooSlow(Exception):
    """An input took longer than `SLOWEST`."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A stretch of a target's inputs."""

    target: str
    seed: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Failure:
    """What came out of a codec, or was not true of what came out; `place` tells kinds of failures apart."""

    target: str
    number: int
    place: str
    trace: str
    literal: str


@dataclass(frozen=True, slots=True)
class Result:
    batch: Batch
    seconds: float
    """Of computing."""
    failures: tuple[Failure, ...]
    memory: tuple[int, int]
    """The process, and how many bytes it holds now."""


def source(seed: str, target: str, number: int) -> Random:
    return Random(f"{seed}:{target}:{number}")


def run_batch(batch: Batch) -> Result:
    """Try a stretch of inputs; of failures at one place only the first is kept."""
    target, found = TARGETS[batch.target], dict[str, Failure]()
    began = time.process_time()
    for number in range(batch.start, batch.stop):
        given = target.make(source(batch.seed, batch.target, number))
        error = attempt(target, given)
        if error is not None and (place := _place(error)) not in found:
            trace = "".join(traceback.format_exception(error, limit=-4))
            found[place] = Failure(batch.target, number, place, trace, repr(shrink(target, given, place)))
    spent = time.process_time() - began
    return Result(batch, spent, tuple(found.values()), (os.getpid(), held()))


def attempt(target: Target, given: Any) -> Exception | None:
    """Return what an input broke, or None."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SLOWEST)
    try:
        target.check(given)
    except Exception as error:  # noqa: BLE001 - whatever comes out is what is searched for
        return error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


def shrink(target: Target, given: Any, place: str, most: int = 400) -> Any:
    """Return a shorter input that breaks the same, found by leaving out pieces."""
    if not isinstance(given, bytes | str | list):
        return given
    width, tries = max(1, len(given) // 2), 0
    while width and tries < most:
        for start in range(0, len(given), width):
            shorter: Any = given[:start] + given[start + width :]  # type: ignore[operator]  # the same kind twice
            tries += 1
            error = attempt(target, shorter)
            if error is not None and _place(error) == place:
                given = shorter
                break
            if tries >= most:
                break
        else:
            width //= 2
    return given


def _place(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {last.filename.rpartition('/')[2]}:{last.lineno}"


def held() -> int:
    """Return the bytes of memory that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def _stop(_: int, __: FrameType | None) -> None:
    raise TooSlow(f"more than {SLOWEST:.0f} s of computing")


def prepare() -> None:
    """Set a process's limits."""
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGVTALRM, _stop)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def plan(count: int, seed: str, names: list[str]) -> Iterator[Batch]:
    """Spread the inputs over the targets by their shares."""
    shares = sum(TARGETS[name].share for name in names)
    for name in names:
        wanted = max(1, round(count * TARGETS[name].share / shares))
        for start in range(0, wanted, BATCH):
            yield Batch(name, seed, start, min(start + BATCH, wanted))


class Report:
    """Adds results up and prints them."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began = self._told = time.monotonic()
        self._inputs: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._memory: dict[int, list[int]] = {}
        self.failures: dict[tuple[str, str], Failure] = {}

    def take(self, result: Result) -> None:
        name = result.batch.target
        self._inputs[name] = self._inputs.get(name, 0) + result.batch.stop - result.batch.start
        self._seconds[name] = self._seconds.get(name, 0.0) + result.seconds
        process, memory = result.memory
        self._memory.setdefault(process, []).append(memory)
        for failure in result.failures:
            if (name, failure.place) not in self.failures:
                self.failures[name, failure.place] = failure
                print(f"FAILED {name} input {failure.number}: {failure.place}", flush=True)
        if time.monotonic() - self._told > 10:
            self._told = time.monotonic()
            done, passed = sum(self._inputs.values()), self._told - self._began
            print(f"{done:>9,} of {self._total:,} inputs, {done / passed:,.0f} a second", flush=True)

    def finish(self, seed: str) -> bool:
        """Print it all; return whether nothing was found."""
        passed = time.monotonic() - self._began
        for name, inputs in self._inputs.items():
            print(
                f"{name:>10} {inputs:>9,} inputs {inputs / max(self._seconds[name], 1e-9):>9,.0f} a second of computing"
            )
        print(f"{sum(self._inputs.values()):,} inputs in {passed:.0f} s, seed {seed}, failures: {len(self.failures)}")
        for failure in self.failures.values():
            _print_failure(failure, seed)
        return self._finish_memory() and not self.failures

    def _finish_memory(self) -> bool:
        every = self._memory.values()
        most = max(max(memory) for memory in every) >> 20
        grown = max(0, *(memory[-1] - max(memory[: len(memory) // 3 + 1]) for memory in every))
        print(
            f"memory of a process: at most {most} MiB between batches, {grown >> 20} MiB more than in its first third"
        )
        return grown <= MOST_GROWTH


def _print_failure(failure: Failure, seed: str) -> None:
    literal = failure.literal
    if len(literal) > LONGEST_LITERAL:
        literal = f"{literal[:LONGEST_LITERAL]}… ({len(literal):,} characters)"
    print(f"\n{failure.target}: {failure.place}\n{failure.trace}input: {literal}")
    print(f"again: scripts/fuzz --seed {seed} --only {failure.target} --at {failure.number}")


def again(name: str, seed: str, number: int) -> bool:
    """Try one input; return whether it is survived."""
    prepare()
    result = run_batch(Batch(name, seed, number, number + 1))
    for failure in result.failures:
        _print_failure(failure, seed)
    return not result.failures


def run(batches: list[Batch], jobs: int, seed: str) -> bool:
    report = Report(sum(batch.stop - batch.start for batch in batches))
    # In no order of targets, so that the speed that is shown is that of the whole.
    Random(seed).shuffle(batches)
    with ProcessPoolExecutor(jobs, get_context("spawn"), prepare) as pool:
        running = {pool.submit(run_batch, batch): batch for batch in batches}
        for done in as_completed(running):
            try:
                report.take(done.result())
            except BrokenProcessPool:
                unfinished = sorted(
                    str(batch) for future, batch in running.items() if not future.done() or future.exception()
                )
                print(f"a process died; one of {jobs} batches of these: {unfinished[:20]}")
                return False
    return report.finish(seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="Throw damaged input at every codec.")
    parser.add_argument("count", nargs="?", type=int, default=1_000_000, help="inputs in all (one million)")
    parser.add_argument("--seed", default="1", help="any text; the same one gives the same inputs")
    parser.add_argument("--only", action="append", choices=sorted(TARGETS), help="a target; may be given several times")
    parser.add_argument("--at", type=int, help="only the input with this number of the one target")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    given = parser.parse_args()
    names = given.only or list(TARGETS)
    if given.at is not None:
        return 0 if again(names[0], given.seed, given.at) else 1
    return 0 if run(list(plan(given.count, given.seed, names)), given.jobs, given.seed) else 1


if __name__ == "__main__":
    sys.exit(main())

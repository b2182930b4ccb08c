"""`fleet sim --crowd`: a crowd at the command line, in as many processes as open files need."""

import asyncio
import itertools
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from fleet.ground import runtime
from fleet.ground.errors import ConfigError, Unavailable, writing
from fleet.workbench.sim.crowd.crowd import CrowdPlan, running
from fleet.workbench.sim.crowd.ledger import merge
from fleet.workbench.sim.crowd.shares import Shares

SPARE_FILES: Final = 500
"""Open files of a process beside its devices: downloads among them."""
_SHOW_SECONDS: Final = 1.0

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CrowdRun:
    """A crowd, and how long it is there: until somebody stops it without `seconds`."""

    plan: CrowdPlan
    seconds: float | None
    report: Path | None


def run_crowd(wanted: CrowdRun, show: Show) -> int:
    """Run a crowd to its end, then write its report; return the exit code."""
    return runtime.run(lambda: _run(wanted, show))


def slices(plan: CrowdPlan, files: int, least: int = 1) -> list[CrowdPlan]:
    """Return the parts of a crowd that fit into a process each.

    Args:
        plan: The whole.
        files: How many a process may have open.
        least: At least so many parts.

    Raises:
        ConfigError: A process could hardly have any.
    """
    most = files - SPARE_FILES
    if most <= 0:
        raise ConfigError(f"a process may open {files} files only; see `ulimit -n`")
    parts = max(least, -(-plan.count // most))
    ends = [plan.count * number // parts for number in range(parts + 1)]
    return [
        replace(plan, first=plan.first + begin, count=end - begin, rate=plan.rate / parts)
        for begin, end in itertools.pairwise(ends)
    ]


async def _run(wanted: CrowdRun, show: Show) -> None:
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    parts = slices(wanted.plan, files)
    if len(parts) == 1:
        document = await _in_this_process(wanted, show)
    else:
        document = await _in_processes(wanted, parts)
    if wanted.report:
        with writing(wanted.report):
            wanted.report.write_text(json.dumps(document), encoding="utf-8")


async def _in_this_process(wanted: CrowdRun, show: Show) -> dict[str, Any]:
    clock = asyncio.get_running_loop().time
    until = None if wanted.seconds is None else clock() + wanted.seconds
    async with running(wanted.plan) as crowd:
        booting = asyncio.create_task(crowd.boot(), name="boot")
        try:
            while until is None or clock() < until:
                calls = crowd.ledger.pace.total()
                counts = ", ".join(f"{count} {what}" for what, count in sorted(crowd.ledger.counts.items()))
                show(f"{crowd.online} of {len(crowd.members)} connected, {calls} calls; {counts}")
                await asyncio.sleep(_SHOW_SECONDS if until is None else min(_SHOW_SECONDS, max(0.0, until - clock())))
        except asyncio.CancelledError:
            pass  # Ctrl-C: what the devices were told is still written.
        booting.cancel()
        return crowd.ledger.document()


async def _in_processes(wanted: CrowdRun, parts: Sequence[CrowdPlan]) -> dict[str, Any]:
    """Run each part in a process of its own; they write to our output."""
    with tempfile.TemporaryDirectory(prefix="fleet-crowd-") as name:
        files = [Path(name) / f"{number}.json" for number in range(len(parts))]
        programs = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-m", "fleet.workbench.sim.crowd", _as_text(part, wanted.seconds, file)
            )
            for part, file in zip(parts, files, strict=True)
        ]
        try:
            codes = await asyncio.gather(*(one.wait() for one in programs))
        except asyncio.CancelledError:
            # They got the same signal from the terminal.
            codes = await asyncio.gather(*(one.wait() for one in programs))
        if any(codes):
            raise Unavailable("a process of the crowd failed")
        return merge([json.loads(file.read_text(encoding="utf-8")) for file in files])


def _as_text(plan: CrowdPlan, seconds: float | None, report: Path) -> str:
    return json.dumps({"plan": asdict(plan), "seconds": seconds, "report": str(report)})


def read_run(text: str) -> CrowdRun:
    """Return what one process of several does."""
    given = json.loads(text)
    plan = given["plan"]
    plan["shares"] = Shares(**plan["shares"])
    return CrowdRun(CrowdPlan(**plan), given["seconds"], Path(given["report"]))

"""The process with a crowd: `python -m fleet.workbench.bench.crowd_load PLAN`; commands on standard input."""

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

from fleet.ground import runtime
from fleet.workbench.bench import control
from fleet.workbench.sim.crowd.crowd import Crowd, CrowdPlan, running
from fleet.workbench.sim.crowd.shares import Shares


class CrowdLoad:
    """What the crowd is asked."""

    def __init__(self, crowd: Crowd, tasks: asyncio.TaskGroup) -> None:
        self._crowd, self._tasks = crowd, tasks
        self._booting: asyncio.Task[None] | None = None

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what the benchmark says and return the answer."""
        crowd = self._crowd
        match command["do"]:
            case "boot":
                self._booting = self._tasks.create_task(crowd.boot(), name="boot")
            case "arrive":
                await crowd.arrive(command["count"], command["rate"])
            case "shares":
                crowd.calls.shares = Shares(**command["shares"])
            case "scatter":
                crowd.scatter(command["count"])
            case "occupy":
                return {"newer": _occupy(crowd, command["count"])}
            case "report":
                await asyncio.to_thread(_write, Path(command["file"]), crowd.ledger.document())
        ready = self._booting is not None and self._booting.done()
        return {"ready": ready, "online": crowd.online, "counts": dict(crowd.ledger.counts)}


def _occupy(crowd: Crowd, count: int) -> int:
    """Let some of those that play notifications be busy for ever; return how many of these there are."""
    newer = [one for one in crowd.members.values() if one.kind.profile.notify]
    for device in newer[:count]:
        device.busy = True
    return len(newer)


def _write(file: Path, document: dict[str, Any]) -> None:
    file.write_text(json.dumps(document), encoding="utf-8")


async def _serve(plan: CrowdPlan) -> None:
    async with asyncio.TaskGroup() as tasks, running(plan) as crowd:
        await control.obey(lambda: CrowdLoad(crowd, tasks).do)


def main() -> int:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    given = json.loads(sys.argv[1])
    plan = CrowdPlan(**{**given, "shares": Shares(**given["shares"])})
    return runtime.run(lambda: _serve(plan))


if __name__ == "__main__":
    sys.exit(main())

"""Group O, continued: many devices that boot at once."""

import asyncio
from functools import cache
from urllib.parse import urlsplit

from fleet.workbench.conformance.checks.bootstrap import GROUP
from fleet.workbench.conformance.context import CheckContext, fresh_mac
from fleet.workbench.conformance.verdict import NotApplicable, require, span
from fleet.workbench.sim.bootstrap.raw_request import Answer, ask, request

_A_SECOND = 500
_SECONDS = 4
_LATEST = 5.0
_OPEN_AT_ONCE = 800
"""Connections; a process may seldom open more than a thousand files."""


@GROUP.check(
    "O12", "500 bootstraps a second are answered, the slowest within 5 s", profiles="P1", alone=True, seconds=120
)
async def answers_a_storm(context: CheckContext) -> str:
    parts = urlsplit(context.setup.ota_url)
    if parts.scheme != "http":
        raise NotApplicable("over https this would measure the suite's own TLS")
    slots, loop = asyncio.Semaphore(_OPEN_AT_ONCE), asyncio.get_running_loop()

    async def boot(content: bytes, due: float) -> Answer:
        async with slots:
            return await ask(parts.hostname or "", parts.port or 80, content, due)

    begun = loop.time()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number, mac in enumerate(_macs()):
            content = request(mac, context.profile, parts.netloc, parts.path)
            await asyncio.sleep(max(0.0, begun + number / _A_SECOND - loop.time()))
            tasks.append(group.create_task(boot(content, loop.time()), name=f"device {number}"))
    answers = [task.result() for task in tasks]
    wrong = {one.status for one in answers} - {"200"}
    require(not wrong, f"not only 200 was answered, but also {', '.join(sorted(wrong))}")
    took = sorted(one.seconds for one in answers)
    p99 = took[round(0.99 * (len(took) - 1))]
    require(p99 < _LATEST, f"the slowest of a hundred after {span(p99)}")
    rate = len(took) / (loop.time() - begun)
    return (
        f"{len(took)} answers, {rate:.0f} a second; half within {span(took[len(took) // 2])}, 99 % within {span(p99)}"
    )


@cache
def _macs() -> list[str]:
    """Return the devices, the same in every round: a server keeps a place for each device that never connected."""
    return [fresh_mac() for _ in range(_A_SECOND * _SECONDS)]

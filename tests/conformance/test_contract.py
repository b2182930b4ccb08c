"""The checks of the device contract, each under its own id, against a `fleet up` of its own.

By default every check runs on the first kind of device that it applies to, and storms come at full strength for a
quarter of their time or less; `scripts/test --slow` runs all of them on all kinds, ten times, with whole storms.
"""

import asyncio
from collections.abc import Sequence

import pytest

from fleet.workbench.conformance.checks import bootstrap_storm, mqtt_storm, select
from fleet.workbench.conformance.command import STOCK
from fleet.workbench.conformance.own_server import own_server
from fleet.workbench.conformance.results import Result
from fleet.workbench.conformance.run import Observer, Task, plan, run_all
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.every import for_every

pytestmark = pytest.mark.conformance

PROFILES = [find_profile(name) for name in STOCK]
EVERYTHING = plan(select(), PROFILES)
DEFAULT = list({task.check.id: task for task in reversed(EVERYTHING)}.values())[::-1]
ROUNDS = 10
AT_ONCE = 20
"""Checks side by side: mostly they wait. With so many, all end before the longest one, a reply of a minute, does."""


def judge(tasks: Sequence[Task]) -> dict[tuple[str, str], list[Result]]:
    """Run tasks against one server; return what came of each check on each profile."""

    async def run() -> list[Result]:
        async with Steering(LOOPBACK, 0) as steering, own_server(steering) as setup:
            return await run_all(tasks, setup, Observer(lambda _: None, lambda _: None), AT_ONCE)

    found: dict[tuple[str, str], list[Result]] = {}
    for result in asyncio.run(run()):
        found.setdefault((result.id, result.profile), []).append(result)
    return found


@pytest.fixture(scope="module")
def once() -> dict[tuple[str, str], list[Result]]:
    with pytest.MonkeyPatch.context() as patch:
        for storm, values in ((mqtt_storm, {"_DEVICES": 250, "_WINDOW": 1.25}), (bootstrap_storm, {"_SECONDS": 1})):
            for name, value in values.items():
                patch.setattr(storm, name, value)
            # The devices are chosen once.
            patch.setattr(storm, "_macs", storm._macs.__wrapped__)
        return judge(DEFAULT)


@pytest.fixture(scope="module")
def again_and_again() -> dict[tuple[str, str], list[Result]]:
    return judge(plan(select(), PROFILES, ROUNDS))


def named(tasks: Sequence[Task]) -> list[object]:
    return [pytest.param(task.check.id, task.profile.name, id=f"{task.check.id}-{task.profile.name}") for task in tasks]


@pytest.mark.requirement(
    "XZ-003",
    "XZ-004",
    "XZ-006",
    "XZ-007",
    "XZ-009",
    "XZ-011",
    "XZ-012",
    "XZ-014",
    "XZ-016",
    "XZ-017",
    "XZ-020",
    "XZ-022",
    "XZ-024",
    "XZ-027",
    "XZ-029",
    "XZ-030",
    "XZ-031",
    "XZ-032",
    "XZ-033",
    "XZ-044",
    "XZ-045",
    "XZ-047",
)
@pytest.mark.parametrize(("check", "profile"), named(DEFAULT))
def test_the_server_conforms(once: dict[tuple[str, str], list[Result]], check: str, profile: str) -> None:
    (result,) = once[check, profile]
    assert result.outcome == "passed", result.seen


@pytest.mark.slow
@for_every("check, profile", [(task.check.id, task.profile.name) for task in EVERYTHING])
def test_the_server_conforms_every_time(
    again_and_again: dict[tuple[str, str], list[Result]], check: str, profile: str
) -> None:
    results = again_and_again[check, profile]
    assert len(results) == ROUNDS
    assert [result.seen for result in results if result.outcome != "passed"] == []

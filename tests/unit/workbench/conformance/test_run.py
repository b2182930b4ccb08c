import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fleet.ground.errors import Unavailable
from fleet.workbench.conformance.catalogue import Check
from fleet.workbench.conformance.context import CheckContext, Setup
from fleet.workbench.conformance.results import Result
from fleet.workbench.conformance.run import Observer, Task, plan, run_all, run_one
from fleet.workbench.conformance.verdict import Failed, NotApplicable
from fleet.workbench.sim.profiles.profile import find_profile

P1, P5 = find_profile("P1"), find_profile("P5")
SETUP = Setup("http://nowhere/")
Run = Callable[[CheckContext], Awaitable[str]]


async def passes(_: CheckContext) -> str:
    return "all well"


def failing(*errors: Exception) -> Run:
    async def run(_: CheckContext) -> str:
        raise errors[0] if len(errors) == 1 else ExceptionGroup("several", errors)

    return run


async def judge(run: Run, **changes: object) -> tuple[str, str]:
    check = Check("X1", "something holds", run, **changes)  # type: ignore[arg-type]
    result = await run_one(Task(check, P1), SETUP)
    assert (result.id, result.title, result.profile) == ("X1", "something holds", "P1")
    return result.outcome, result.seen


async def test_what_a_check_saw_is_the_result() -> None:
    assert await judge(passes) == ("passed", "all well")


@pytest.mark.parametrize("error", [Failed("no answer"), Unavailable("no answer"), OSError("no answer")])
async def test_a_check_fails_with_what_it_says(error: Exception) -> None:
    assert await judge(failing(error)) == ("failed", "no answer")


async def test_a_check_that_does_not_apply_is_skipped_with_its_reason() -> None:
    assert await judge(failing(NotApplicable("one topic for all"))) == ("skipped", "one topic for all")


async def test_a_check_of_scripted_models_is_skipped_without_them() -> None:
    assert await judge(passes, steered=True) == ("skipped", "needs the scripted models")


async def test_a_check_that_hangs_fails_at_its_limit() -> None:
    async def hang(_: CheckContext) -> str:
        await asyncio.Event().wait()
        return ""

    assert await judge(hang, seconds=0.01) == ("failed", "not done within 0.01 s")


async def test_a_time_out_of_its_own_is_not_called_the_limit() -> None:
    assert await judge(failing(TimeoutError("no SUBACK"))) == ("failed", "no SUBACK")


async def test_what_a_device_complains_about_fails_a_check_that_would_pass() -> None:
    async def run(context: CheckContext) -> str:
        context.findings += ["json-depth: 12 levels", "json-depth: 12 levels"]
        return "all well"

    assert await judge(run) == ("failed", "all well; also json-depth: 12 levels")


async def test_half_a_character_that_a_server_sent_can_be_written_down() -> None:
    assert await judge(failing(Failed("alert \ud83d"))) == ("failed", "alert ?")


async def test_of_several_failures_the_first_is_told() -> None:
    assert await judge(failing(NotApplicable("odd"), Failed("one"), Failed("two"))) == ("failed", "one")


async def test_a_check_that_breaks_fails_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    tasks = [
        Task(Check("X1", "breaks", failing(ZeroDivisionError("oh"))), P1),
        Task(Check("X2", "breaks with others", failing(Failed("no"), ZeroDivisionError("oh"))), P1),
        Task(Check("X3", "holds", passes), P1),
    ]
    results = await run_all(tasks, SETUP, Observer(lambda _: None, lambda _: None))
    assert [result.outcome for result in results] == ["failed", "failed", "passed"]
    assert all("the check itself broke" in result.seen for result in results[:2])
    assert "ZeroDivisionError" in caplog.text


def test_a_plan_has_every_profile_that_applies_and_all_rounds_even_of_a_generator() -> None:
    both, one = Check("X1", "", passes), Check("X2", "", passes, profiles=frozenset({"P5"}))
    alone = Check("X3", "", passes, alone=True)
    tasks = plan((check for check in (alone, both, one)), [P1, P5], rounds=2)
    assert [(task.check.id, task.profile.name, task.round) for task in tasks] == [
        ("X3", "P1", 1),
        ("X3", "P5", 1),
        ("X3", "P1", 2),
        ("X3", "P5", 2),
        ("X1", "P1", 1),
        ("X1", "P5", 1),
        ("X2", "P5", 1),
        ("X1", "P1", 2),
        ("X1", "P5", 2),
        ("X2", "P5", 2),
    ]


async def test_checks_run_side_by_side_up_to_a_number_and_others_alone_before() -> None:
    running: list[str] = []
    seen: dict[str, int] = {}

    def counting(id_: str) -> Run:
        async def run(_: CheckContext) -> str:
            running.append(id_)
            for _turn in range(5):
                await asyncio.sleep(0)
                seen[id_] = max(seen.get(id_, 0), len(running))
            running.remove(id_)
            return ""

        return run

    ids = ("X1", "X2", "X3", "X4")
    checks = [Check(id_, "", counting(id_), alone=id_ == "X1") for id_ in ids]
    begun: list[str] = []
    ended: list[Result] = []
    observer = Observer(lambda task: begun.append(task.check.id), ended.append)
    results = await run_all([Task(check, P1) for check in checks], SETUP, observer, at_once=2)
    assert [result.id for result in results] == list(ids)
    assert seen == {"X1": 1, "X2": 2, "X3": 2, "X4": seen["X4"]}
    assert max(seen.values()) == 2
    assert begun[0] == "X1"
    assert len(ended) == 4

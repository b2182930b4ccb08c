"""The judgement over the results of a job."""

import pytest

from fleet.workbench.bench.job_verdict import Result, judge

ASKED = ("volume", '{"volume": 1}')


def result(device: str, state: str, attempts: int = 1) -> Result:
    return Result(device, state, attempts, "")  # type: ignore[arg-type]


def test_results_that_are_what_the_devices_did_are_exact() -> None:
    calls = {"a": [(*ASKED, "ok")], "b": [("other", "{}", "ok"), (*ASKED, "error")], "c": [(*ASKED, "silent")]}
    results = [result("a", "ok"), result("b", "error"), result("c", "unknown"), result("d", "waiting", 0)]
    found = judge(results, calls, *ASKED)
    assert (found.devices, found.told, found.twice, found.unsure, found.differing) == (4, 3, 0, 0, 0)
    assert (found.states, found.wrong) == ({"ok": 1, "error": 1, "unknown": 1, "waiting": 1}, [])


@pytest.mark.parametrize(
    ("state", "attempts", "fates", "twice", "differing", "unsure"),
    [
        ("ok", 1, ["ok", "ok"], 1, 0, 0),
        ("ok", 2, ["silent", "ok"], 0, 0, 0),
        ("ok", 1, [], 0, 1, 0),
        ("ok", 1, ["error"], 0, 1, 0),
        ("error", 1, ["ok"], 0, 1, 0),
        ("waiting", 0, ["ok"], 1, 1, 0),
        ("timed_out", 1, ["ok"], 0, 1, 0),
        ("unknown", 1, ["ok"], 0, 0, 1),
        ("unknown", 1, [], 0, 0, 0),
    ],
)
def test_what_differs_is_found(
    state: str, attempts: int, fates: list[str], twice: int, differing: int, unsure: int
) -> None:
    found = judge([result("a", state, attempts)], {"a": [(*ASKED, fate) for fate in fates]}, *ASKED)
    assert (found.twice, found.differing, found.unsure) == (twice, differing, unsure)
    assert bool(found.wrong) == bool(twice or differing)


def test_a_device_that_has_no_part_in_the_job_is_found() -> None:
    found = judge([], {"x": [(*ASKED, "ok")], "y": [("other", "{}", "ok")]}, *ASKED)
    assert (found.twice, found.wrong) == (1, ["x has no part in the job"])

"""The judgement over the receipts of an announcement."""

import pytest

from fleet.workbench.bench.announcement_verdict import judge_receipts
from fleet.workbench.bench.job_verdict import Result

PLAYED, SHOWN = "notify: played", "alert: shown"


def result(device: str, text: str, state: str = "ok") -> Result:
    return Result(device, state, 1, text)  # type: ignore[arg-type]


def test_receipts_that_are_what_devices_did_are_exact() -> None:
    results = [result("a", PLAYED), result("b", SHOWN), result("c", "it had to wait for too long", "timed_out")]
    found = judge_receipts(results, {"a": ["url"]}, {"b": 1})
    assert (found.devices, found.played, found.shown, found.twice, found.differing) == (3, 1, 1, 0, 0)
    assert (found.receipts, found.wrong) == ({PLAYED: 1, SHOWN: 1, "timed_out": 1}, [])


@pytest.mark.parametrize(
    ("text", "played", "shown", "twice"),
    [
        (PLAYED, 0, 0, 0),
        (PLAYED, 2, 0, 1),
        (PLAYED, 1, 1, 1),
        (SHOWN, 1, 0, 0),
        (SHOWN, 0, 0, 0),
        (SHOWN, 0, 2, 1),
        ("notify: taken", 0, 1, 0),
        ("notify: cut short", 1, 0, 0),
        ("alert: sent", 1, 0, 0),
    ],
)
def test_what_differs_is_found(text: str, played: int, shown: int, twice: int) -> None:
    found = judge_receipts([result("a", text)], {"a": ["url"] * played}, {"a": shown})
    assert (found.twice, found.differing, len(found.wrong)) == (twice, 1, 1)


@pytest.mark.parametrize(
    ("text", "played", "shown"), [("notify: taken", 1, 0), ("notify: cut short", 0, 0), ("alert: sent", 0, 1)]
)
def test_what_a_receipt_leaves_open_does_not_differ(text: str, played: int, shown: int) -> None:
    assert judge_receipts([result("a", text)], {"a": ["url"] * played}, {"a": shown}).differing == 0


def test_a_device_that_has_no_part_is_found() -> None:
    found = judge_receipts([], {"a": ["url"]}, {})
    assert (found.differing, found.wrong) == (1, ["a has no part in it"])

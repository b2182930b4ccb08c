"""Lists are a table for people, and JSON of one shape for programs."""

import json
from datetime import UTC, datetime

import pytest

from fleet.operations.listing import print_list

ROWS = [("a\x1b[2J", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), 3), ("b", None, None)]


def test_programs_get_one_object_with_one_list(capsys: pytest.CaptureFixture[str]) -> None:
    print_list("things", ("name", "last_seen", "times"), ROWS, as_json=True)
    printed = capsys.readouterr().out
    assert printed.isascii() and "\x1b" not in printed
    assert json.loads(printed) == {
        "things": [
            {"name": "a\x1b[2J", "last_seen": "2026-01-02T03:04:05Z", "times": 3},
            {"name": "b", "last_seen": None, "times": None},
        ]
    }


def test_a_pipe_gets_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    print_list("things", ("name", "last_seen", "times"), [*ROWS, (long, None, 1)], as_json=False)
    heading, first, _, last = capsys.readouterr().out.splitlines()
    assert heading.split() == ["name", "last", "seen", "times"]
    assert first.split() == ["a\\x1b[2J", "2026-01-02", "03:04", "3"]
    assert last.split() == [long, "1"], "nothing is wrapped"


def test_a_list_may_have_no_heading(capsys: pytest.CaptureFixture[str]) -> None:
    print_list("things", ("name",), [("a",), ("b",)], as_json=False, heading=False)
    assert capsys.readouterr().out.split() == ["a", "b"]


def test_a_list_wider_than_the_terminal_keeps_its_words_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    columns = [f"column_{number}" for number in range(11)]
    print_list("things", columns, [["24:0a:c4:12:34:56"] * 11], as_json=False)
    *_, row = capsys.readouterr().out.splitlines()
    assert row.count("24:0a:c4:12:34:56") == 11

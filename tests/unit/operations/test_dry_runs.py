"""Dry runs as lines of text."""

import pytest

from fleet.operations.dry_runs import print_change, print_users, skip_lines
from fleet.wire.control.agents import AgentPreview, AssignmentPreview
from fleet.wire.control.jobs import SkipCount


def test_each_reason_is_a_line() -> None:
    found = [SkipCount(reason="the device is revoked", devices=1), SkipCount(reason="it is another board", devices=3)]
    assert skip_lines(found) == ["1 device skipped: the device is revoked", "3 devices skipped: it is another board"]
    assert skip_lines(found[:1], "keep theirs") == ["1 device keep theirs: the device is revoked"]
    assert skip_lines([]) == []


def test_what_was_not_counted_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"devices": 7, "online": 1, "skipped": [], "changing": 7, "talking": 0, "counted": False}
    print_change(AssignmentPreview(**counts), as_json=False)
    told = "not counted, as a query takes too long: at most 7 devices would get another agent\n"
    assert capsys.readouterr().out == told
    print_users(AgentPreview(**counts, given=[], instead=[]), as_json=False)
    assert "at most 7 devices would change" in capsys.readouterr().out


def test_devices_that_are_still_being_given_their_agent_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    found = AgentPreview(devices=7, online=1, skipped=[], changing=7, talking=0, given=[], instead=[], late=3)
    print_users(found, as_json=False)
    assert "3 devices still being given this agent, or another one in its place\n" in capsys.readouterr().out
    print_users(found.model_copy(update={"late": 0}), as_json=False)
    assert "given" not in capsys.readouterr().out

"""Dry runs as lines of text."""

from fleet.operations.dry_runs import skip_lines
from fleet.wire.control.jobs import SkipCount


def test_each_reason_is_a_line() -> None:
    found = [SkipCount(reason="the device is revoked", devices=1), SkipCount(reason="it is another board", devices=3)]
    assert skip_lines(found) == ["1 device skipped: the device is revoked", "3 devices skipped: it is another board"]
    assert skip_lines(found[:1], "keep theirs") == ["1 device keep theirs: the device is revoked"]
    assert skip_lines([]) == []

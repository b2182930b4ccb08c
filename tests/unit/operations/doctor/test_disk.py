from pathlib import Path

import pytest

from fleet.operations.doctor import disk
from fleet.operations.doctor.disk import judge_disk


@pytest.mark.parametrize(
    ("full", "low", "verdict", "text"),
    [
        (0, 0, "ok", "MB are free for fleet"),
        (0, 1 << 60, "warning", "nearly full"),
        (1 << 60, 1 << 60, "problem", "full"),
    ],
)
def test_a_disk_is_judged_by_its_free_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: int, low: int, verdict: str, text: str
) -> None:
    monkeypatch.setattr(disk, "_FULL", full)
    monkeypatch.setattr(disk, "_LOW", low)
    found = judge_disk("machine.disk", tmp_path, "fleet")
    assert (found.check, found.verdict) == ("machine.disk", verdict)
    assert text in found.message and str(tmp_path) in found.message
    assert verdict == "ok" or f"df -h {tmp_path}" in found.advice


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    found = judge_disk("redis.disk", tmp_path / "gone", "Redis")
    assert found.verdict == "warning" and str(tmp_path / "gone") in found.message

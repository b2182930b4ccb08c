"""`scripts/bench jobs` with a small crowd."""

from pathlib import Path

import pytest

from tests.support.bench_command import run_bench


@pytest.mark.parametrize("brokers", [0, 2])
def test_every_result_of_a_job_is_what_the_devices_did(tmp_path: Path, brokers: int) -> None:
    words = ("--devices", "100", "--rate", "50", "--talkers", "1", "--brokers", str(brokers))
    printed, found = run_bench(tmp_path, "jobs", *words)
    assert "100 devices" in printed
    outer = found["broker_files"][1:]
    assert len(outer) == brokers
    assert all(files > found["online"] / 3 for files in outer)
    for job in (found["alone"], found["beside"]):
        verdict = job["verdict"]
        assert (verdict["devices"], verdict["twice"], verdict["differing"], verdict["wrong"]) == (100, 0, 0, [])
        assert verdict["told"] == found["online"]
    assert found["halt"]["touched"] <= 50 + 20

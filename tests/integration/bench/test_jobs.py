"""`scripts/bench jobs` with a small crowd."""

from pathlib import Path

from tests.support.bench_command import run_bench


async def test_every_result_of_a_job_is_what_the_devices_did(tmp_path: Path) -> None:
    printed, found = await run_bench(tmp_path, "jobs", "--devices", "100", "--rate", "50", "--talkers", "1")
    assert "100 devices" in printed
    for job in (found["alone"], found["beside"]):
        verdict = job["verdict"]
        assert (verdict["devices"], verdict["twice"], verdict["differing"], verdict["wrong"]) == (100, 0, 0, [])
        assert verdict["told"] == found["online"]
    assert found["halt"]["touched"] <= 50 + 20

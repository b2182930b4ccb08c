"""The benchmark of tool calls runs against real servers; what a call costs is never asserted."""

from pathlib import Path

from tests.support.bench_command import run_bench


def test_turns_call_tools_of_connected_devices(tmp_path: Path) -> None:
    plan = ("--devices", "5", "--connected", "5", "--rate", "10", "--seconds", "0.4", "--repeats", "1")
    printed, found = run_bench(tmp_path, "call", *plan)
    assert "one more call" in printed
    [case] = found["cases"]
    for turn in (case["turn"], case["single"], case["many"]):
        assert turn["count"] > 0
        assert turn["lost"] == 0
    assert case["low_ms"]["p50"] > 0, "a turn waited for the outcome of its call"
    assert {"median", "least", "most"} == case["call_us"]["worker"].keys()

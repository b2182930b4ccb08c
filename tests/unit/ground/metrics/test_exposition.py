import pytest
from prometheus_client.parser import text_string_to_metric_families

from fleet.ground.metrics import audio, calls, exposition, turns


def samples() -> dict[str, float]:
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in text_string_to_metric_families(exposition.render().decode())
        for sample in family.samples
    }


def test_a_histogram_is_shown_with_rising_buckets_and_their_sum() -> None:
    before = samples()
    turns.llm_ttft.observe(0.25)
    turns.llm_ttft.observe(100.0)
    after = samples()

    def grown(name: str) -> float:
        return after[name] - before[name]

    name = "fleet_turn_llm_ttft_seconds"
    assert grown(f"{name}_bucket[('le', '0.2')]") == 0
    assert grown(f"{name}_bucket[('le', '0.3')]") == 1
    assert grown(f"{name}_bucket[('le', '30')]") == 1
    assert grown(f"{name}_bucket[('le', '+Inf')]") == grown(f"{name}_count[]") == 2
    assert grown(f"{name}_sum[]") == pytest.approx(100.25)


def test_counters_and_gauges_are_shown_under_their_names() -> None:
    calls.end("device", "ok", 0.1)
    with audio.sessions.following(lambda: 4):
        shown = samples()
    assert shown["fleet_tool_calls_total[('outcome', 'ok'), ('place', 'device')]"] >= 1
    assert shown["fleet_sessions[]"] == 4


def test_the_process_itself_is_shown() -> None:
    assert samples()["process_resident_memory_bytes[]"] > 0

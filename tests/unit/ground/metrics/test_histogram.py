import pytest

from fleet.ground.metrics.definition import METRICS, OTHER
from fleet.ground.metrics.histogram import HistogramMetric


@pytest.fixture(autouse=True)
def no_traces_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.ground.metrics.definition.METRICS", {})


def test_a_value_falls_into_the_first_bucket_that_holds_it() -> None:
    histogram = HistogramMetric("h_seconds", "Some time.", "edge", (1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    tally = histogram.tally()
    assert tally.counts == [2, 1, 1]
    assert tally.sum == 12.0


def test_a_strange_label_makes_no_new_series() -> None:
    histogram = HistogramMetric("h_seconds", "Some time.", "edge", (1.0,), {"place": ("here",)})
    for number in range(100):
        histogram.observe(0.1, f"stranger {number}")
    histogram.observe(0.1, "here")
    assert set(histogram.tallies) == {("here",), (OTHER,)}


def test_it_shows_zeros_before_anything_happened() -> None:
    assert HistogramMetric("h_seconds", "Some time.", "edge", (1.0,)).tally().counts == [0, 0]


def test_forgetting_keeps_the_tallies_that_others_hold() -> None:
    histogram = HistogramMetric("h_seconds", "Some time.", "edge", (1.0,))
    held = histogram.tally()
    held.observe(0.5)
    histogram.reset()
    held.observe(0.5)
    assert histogram.tally().counts == [1, 0]


def test_the_real_definitions_are_not_those_of_tests() -> None:
    assert "h_seconds" not in METRICS

from collections import Counter

import pytest

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import OTHER


@pytest.fixture(autouse=True)
def own_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.ground.metrics.definition.METRICS", {})


def make() -> CounterMetric:
    return CounterMetric("refusals", "Who was refused.", "worker", {"reason": ("hello_too_often",)})


def test_a_followed_counter_is_read_when_somebody_asks() -> None:
    metric, counts = make(), Counter[str]()
    with metric.following(counts):
        counts["hello: too often"] += 3
        assert metric.read() == {("hello_too_often",): 3}


def test_what_was_counted_stays_when_the_role_is_gone() -> None:
    metric, counts = make(), Counter[str]()
    with metric.following(counts):
        counts["hello: too often"] += 3
    counts["hello: too often"] += 1
    with metric.following(Counter({"hello: too often": 2})):
        assert metric.read() == {("hello_too_often",): 5}


def test_two_equal_counters_are_two() -> None:
    metric = make()
    one, other = Counter({"hello: too often": 1}), Counter({"hello: too often": 1})
    with metric.following(one):
        with metric.following(other):
            assert metric.read() == {("hello_too_often",): 2}
        assert metric.read() == {("hello_too_often",): 2}


def test_strange_reasons_are_one_series() -> None:
    metric = make()
    with metric.following(Counter({f"reason {number}": 1 for number in range(50)})):
        assert metric.read() == {(OTHER,): 50}


def test_a_key_may_be_none_of_its_business() -> None:
    packets = CounterMetric("packets", "Packets.", "edge", split=lambda key: () if key == "received" else None)
    with packets.following(Counter({"received": 7, "lost": 2})):
        assert packets.read() == {(): 7}


def test_its_own_counts_and_those_of_others_are_one_sum() -> None:
    metric = make()
    metric.add("hello_too_often")
    with metric.following(Counter({"hello: too often": 1})):
        assert metric.read() == {("hello_too_often",): 2}


def test_one_without_labels_begins_at_zero() -> None:
    assert CounterMetric("packets", "Packets.", "edge").read() == {(): 0}

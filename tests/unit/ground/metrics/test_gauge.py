import pytest

from fleet.ground.metrics.gauge import GaugeMetric


@pytest.fixture(autouse=True)
def own_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.ground.metrics.definition.METRICS", {})


def test_readings_are_summed_up_while_they_last() -> None:
    gauge = GaugeMetric("sessions", "Sessions.", "edge")
    with gauge.following(lambda: 2):
        with gauge.following(lambda: 3):
            assert gauge.read() == {(): 5.0}
        assert gauge.read() == {(): 2.0}
    assert gauge.read() == {}


def test_what_is_not_known_yet_is_not_shown() -> None:
    gauge = GaugeMetric("ready", "Parts.", "edge", {"part": ("udp", "redis")})
    with gauge.following(lambda: None, "udp"), gauge.following(lambda: 0.0, "redis"):
        assert gauge.read() == {("redis",): 0.0}

import pytest

from fleet.ground.errors import ConfigError
from fleet.ground.settings import load, variable


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("FLEET_METRICS_PORT", "FLEET_METRICS_HOST", "FLEET_OTLP_ENDPOINT", "FLEET_CONFIG")
    for name in (*names, "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def test_metrics_are_on_and_traces_off() -> None:
    assert (load().metrics_port, load().metrics_host, load().otlp_endpoint) == (9464, "0.0.0.0", None)


@pytest.mark.parametrize("value", ["0", "none", "None", "off", ""])
def test_the_port_can_be_switched_off(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_METRICS_PORT", value)
    assert load().metrics_port == 0


@pytest.mark.parametrize("name", ["FLEET_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"])
def test_the_collector_has_two_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://otel:4318/")
    assert load().otlp_endpoint == "http://otel:4318"
    assert variable("otlp_endpoint") == "FLEET_OTLP_ENDPOINT"


def test_a_collector_without_a_scheme_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_OTLP_ENDPOINT", "otel:4317")
    with pytest.raises(ConfigError, match="FLEET_OTLP_ENDPOINT"):
        load()

from pathlib import Path

import pytest

from fleet.workbench.cluster.caller_settings import caller_settings


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLM_BASE_URL", "LLM_API_KEY", "FLEET_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def test_settings_of_models_and_conversations_are_taken_over_with_their_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:8010/v1")
    monkeypatch.setenv("LLM_API_KEY", "secret")
    monkeypatch.setenv("FLEET_DRAIN_SECONDS", "4")
    assert caller_settings() == {
        "drain_seconds": 4.0,
        "llm_api_key": "secret",
        "llm_base_url": "http://127.0.0.1:8010/v1",
    }


def test_the_clusters_own_matters_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_MQTT_URL", "mqtt://elsewhere:1883")
    monkeypatch.setenv("FLEET_REDIS_URL", "redis://elsewhere:6379/0")
    monkeypatch.setenv("FLEET_METRICS_PORT", "9464")
    assert caller_settings() == {}


def test_a_file_counts_as_the_environment_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "fleet.toml"
    config.write_text('llm_model = "one"\n')
    monkeypatch.setenv("FLEET_CONFIG", str(config))
    assert caller_settings("http://127.0.0.1:1/v1") == {"llm_base_url": "http://127.0.0.1:1/v1", "llm_model": "one"}

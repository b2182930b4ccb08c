"""Wrong settings are told so that they can be mended, and nothing secret with them."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings, load, variable
from fleet.ground.settings.wording import allowed, details, shown
from tests.support.every import for_every


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(variable(name), raising=False)
    monkeypatch.delenv("FLEET_CONFIG", raising=False)


def refusal() -> str:
    with pytest.raises(ConfigError) as caught:
        load()
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("FLEET_KEEPALIVE", "1", "FLEET_KEEPALIVE: '1' is wrong; allowed: whole number of seconds, 10 to 240"),
        ("FLEET_TOOL_SECONDS", "no", "FLEET_TOOL_SECONDS: 'no' is wrong; allowed: seconds, above 0"),
        ("LLM_TIMEOUT", "0", "LLM_TIMEOUT: '0' is wrong; allowed: seconds, above 0"),
        ("FLEET_LOG_PII", "maybe", "FLEET_LOG_PII: 'maybe' is wrong; allowed: `true` or `false`"),
        ("FLEET_ACTIVATION", "opne", "FLEET_ACTIVATION: 'opne' is wrong; allowed: `open`, `first`, `code` or `closed`"),
        ("FLEET_SHARDS", "3", "FLEET_SHARDS: '3' is wrong: must be a divisor of 256"),
        (
            "FLEET_RATE_HELLOS",
            "5",
            "FLEET_RATE_HELLOS: '5' is wrong: must be PER_SECOND/BURST, such as 0.5/10, both above 0",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "h:1",
            "FLEET_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT: 'h:1' is wrong: must be http://host:port or "
            "https://host:port",
        ),
        ("LLM_BASE_URL", "h:1", "LLM_BASE_URL: 'h:1' is wrong: must be http://… or https://…, with a host"),
        ("FLEET_MQTT_URL", "h", "FLEET_MQTT_URL: 'h' is wrong: must be mqtt://… or mqtts://…, with a host"),
        ("LLM_MODLE", "m", "unknown setting LLM_MODLE (is it LLM_MODEL?); `fleet settings` lists all"),
        ("ASR_KEY", "k", "unknown setting ASR_KEY (is it ASR_API_KEY?); `fleet settings` lists all"),
        ("FLEET_SHARD", "8", "unknown setting FLEET_SHARD (is it FLEET_SHARDS?); `fleet settings` lists all"),
        ("FLEET_QQQ", "8", "unknown setting FLEET_QQQ; `fleet settings` lists all"),
    ],
)
def test_a_wrong_variable_is_told(name: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert refusal() == told


def test_variables_of_other_programs_are_no_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTS_HOME", "/models")
    monkeypatch.setenv("LLM_CACHE_FOLDER", "/cache")
    assert load().tts_model == "tts-1"


def test_all_faults_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_SHARDS", "3")
    monkeypatch.setenv("CLOUD_PORT", "70000")
    assert "FLEET_SHARDS: '3'" in refusal()
    assert "CLOUD_PORT: '70000' is wrong; allowed: port, 0 to 65535" in refusal()


def test_a_wrong_line_of_the_file_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text('FLEET_SHARDS = 8\nmqtt_prot = 1\nkeys = ["kept-to-itself"]\n')
    monkeypatch.setenv("FLEET_CONFIG", str(file))
    told = refusal()
    assert f"unknown setting FLEET_SHARDS in {file} (is it shards?)" in told
    assert f"unknown setting mqtt_prot in {file} (is it mqtt_port?)" in told
    assert "FLEET_KEYS is wrong (its value is not shown); allowed: id:key,…" in told
    assert "kept-to-itself" not in told


def test_a_file_that_is_not_text_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_bytes(b"\xff\xfe")
    monkeypatch.setenv("FLEET_CONFIG", str(file))
    assert str(file) in refusal()


def test_a_password_in_a_wrong_address_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_LOCATION_URL", "https://me:pass@word@h/x?token=abc")
    assert refusal().startswith("FLEET_LOCATION_URL: 'https://********@h/x?token=********' is wrong")


def test_a_long_value_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_KEEPALIVE", "9" * 500)
    assert len(refusal()) < 200


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (30.0, "30"),
        (0.5, "0.5"),
        ("redis://:pw@h:6379/0", "redis://********@h:6379/0"),
        (
            "redis+sentinel://u:p@a,b/s?sentinel_password=x",
            "redis+sentinel://********@a,b/s?sentinel_password=********",
        ),
        ("https://h/{ip}?key=abc&lang=en", "https://h/{ip}?key=********&lang=********"),
        ("https://h/?where={ip}", "https://h/?where={ip}"),
        ("You are kind?\nYes=no", "You are kind? Yes=no"),
    ],
)
def test_values_are_shown_without_what_is_secret(value: object, text: str) -> None:
    assert shown(value) == text


@for_every("name", Settings.model_fields)
def test_what_is_allowed_can_be_said(name: str) -> None:
    assert allowed(Settings.model_fields[name])


@for_every(
    "name", (name for name, field in Settings.model_fields.items() if "PER_SECOND" in details(field).get("syntax", ""))
)
def test_every_rate_is_checked(name: str) -> None:
    """Validators of two groups with one name would replace each other."""
    with pytest.raises(ValidationError, match="PER_SECOND/BURST"):
        Settings(**{name: "5"})

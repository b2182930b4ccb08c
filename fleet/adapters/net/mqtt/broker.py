"""The address of a broker, checked."""

from pathlib import Path

from fleet.adapters.net.mqtt.session import tls_context
from fleet.adapters.net.mqtt.url import MqttAddress, parse_mqtt_url
from fleet.ground.errors import ConfigError


def broker_address(url: str, authorities: Path | None) -> MqttAddress:
    """Return the broker's address.

    Args:
        url: FLEET_MQTT_URL or another one of its form.
        authorities: PEM file with further authorities that may certify a broker (FLEET_TLS_CA).

    Raises:
        ConfigError: The URL is wrong, or the file of authorities holds none.
    """
    address = parse_mqtt_url(url, authorities)
    if address.tls and address.authorities is not None:
        try:
            tls_context(address.authorities)
        except OSError as error:
            raise ConfigError(f"FLEET_TLS_CA: {address.authorities}: no certificates in PEM") from error
    return address

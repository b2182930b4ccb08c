"""The broker that the settings name."""

from fleet.adapters.net.mqtt.session import tls_context
from fleet.adapters.net.mqtt.url import MqttAddress, parse_mqtt_url
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings


def broker_address(settings: Settings, url: str) -> MqttAddress:
    """Return the broker's address, with the authorities that it is checked by.

    Raises:
        ConfigError: The URL is wrong, or the file of authorities holds none.
    """
    address = parse_mqtt_url(url, settings.tls_ca)
    if address.tls and address.authorities is not None:
        try:
            tls_context(address.authorities)
        except OSError as error:
            raise ConfigError(f"FLEET_TLS_CA: {address.authorities}: no certificates in PEM") from error
    return address

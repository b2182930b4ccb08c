"""The address of a broker."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fleet.ground.errors import ConfigError

_PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True, slots=True)
class MqttAddress:
    """A broker's address; with `tls` its certificate must be valid for `host`.

    The certificate must be signed by one of the system's authorities, or by one in the file `authorities`.
    """

    host: str
    port: int
    tls: bool = False
    authorities: Path | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{host}:{self.port}"


def parse_mqtt_url(url: str, authorities: Path | None = None) -> MqttAddress:
    """Return the address in `mqtt://host[:port]` or `mqtts://host[:port]`; without a port it is 1883 or 8883.

    Raises:
        ConfigError: Another scheme, no host, a bad port, a user name (credentials are derived from FLEET_KEYS), or a
            path. The message does not repeat the URL, which may hold a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        # The library's message repeats a part of the URL.
        raise ConfigError("the broker's URL has no valid host or port") from None
    if parts.scheme not in _PORTS or not host:
        raise ConfigError("the broker's URL must look like mqtt://host:port or mqtts://host:port")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("the broker's URL must not hold a user name or password: they are derived from FLEET_KEYS")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigError("the broker's URL must end after the port")
    tls = parts.scheme == "mqtts"
    return MqttAddress(host, port or _PORTS[parts.scheme], tls, authorities if tls else None)

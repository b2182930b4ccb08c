"""A table of the listening ports of `fleet up`: who can connect to each, and what a connection requires."""

from dataclasses import dataclass, fields

from fleet.ground.settings import Settings
from fleet.ground.settings.fields import ANY_ADDRESS
from fleet.ground.settings.tls import is_loopback

_POLICIES = {
    "open": "nothing: open",
    "first": "nothing of a new device",
    "code": "that you accept its code",
    "closed": "that you named it before",
}
_ANY = frozenset({ANY_ADDRESS, "::", ""})


@dataclass(frozen=True, slots=True)
class Listener:
    """One port. `reachable` says who can connect, `requires` which credentials a connection needs."""

    purpose: str
    protocol: str
    address: str
    reachable: str
    requires: str


def listeners(settings: Settings, http_port: int | None = None, control_port: int | None = None) -> list[Listener]:
    """Return the listening ports of `fleet up` with these settings.

    Args:
        settings: Of the process.
        http_port: The api's actual port, if the settings let the system choose it.
        control_port: The port of control, if that runs.
    """
    plain, found = settings.plain_host, []
    http = settings.http_port if http_port is None else http_port
    found.append(_listener("devices: bootstrap", "http", plain(settings.http_host), http, _policy(settings)))
    if settings.tls_cert is not None:
        found.append(
            _listener("devices: bootstrap", "https", settings.http_host, settings.https_port, _policy(settings))
        )
    if settings.mqtt_url is None:
        login = "the device's password"
        found.append(_listener("devices: messages", "mqtt", plain(settings.mqtt_host), settings.mqtt_port, login))
        if settings.tls_cert is not None:
            found.append(_listener("devices: messages", "mqtts", settings.mqtt_host, settings.mqtts_port, login))
    found.append(_listener("devices: audio", "udp", settings.udp_host, settings.udp_port, "the session's key"))
    tokens = "a token" if settings.gateway_tokens else "nothing: open"
    found.append(_listener("text clients", "websocket", plain(settings.cloud_host), settings.cloud_port, tokens))
    if settings.tls_cert is not None:
        found.append(_listener("text clients", "websocket + tls", settings.cloud_host, settings.wss_port, tokens))
    if control_port is not None:
        scheme = "https" if settings.control_tls else "http"
        found.append(
            _listener("operators: control", scheme, settings.control_host, control_port, "an account or a token")
        )
    if settings.metrics_port:
        host, port = settings.metrics_host, settings.metrics_port
        found.append(_listener("metrics and health", "http", host, port, "nothing: open"))
    return found


def table(rows: list[Listener]) -> str:
    """Return the rows as plain ASCII, one line each, below a heading."""
    lines = [("LISTENS FOR", "PROTOCOL", "ADDRESS", "REACHABLE BY", "REQUIRES")]
    lines += [tuple(getattr(row, field.name) for field in fields(row)) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _listener(purpose: str, protocol: str, host: str, port: int, requires: str) -> Listener:
    reachable = (
        "this machine" if is_loopback(host) else "hosts on all networks" if host in _ANY else f"hosts that reach {host}"
    )
    return Listener(purpose, protocol, f"{host or ANY_ADDRESS}:{port}", reachable, requires)


def _policy(settings: Settings) -> str:
    return f"{_POLICIES[settings.activation]} (FLEET_ACTIVATION={settings.activation})"

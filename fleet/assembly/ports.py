"""The ports of `fleet up`: claimed before anything is loaded, and listed for whoever started it."""

import errno
import ipaddress
import socket
from typing import NamedTuple

from fleet.errors import ConfigError
from fleet.settings import Settings, variable
from fleet.settings.fields import EVERYWHERE

_LOOPBACK = "127.0.0.1"


class Port(NamedTuple):
    """A port that is wanted, by the names of its settings, and what is served there."""

    name: str
    host: str
    purpose: str
    kind: socket.SocketKind = socket.SOCK_STREAM

    def place(self, settings: Settings) -> tuple[str, int]:
        return getattr(settings, self.host), getattr(settings, self.name)

    def part(self, settings: Settings, others: list["Port"]) -> None:
        """Fail when another of our own settings names the same port."""
        host, number = self.place(settings)
        for other in others:
            its_host, its_number = other.place(settings)
            meet = host == its_host or EVERYWHERE in (host, its_host)
            if number and number == its_number and meet and other.kind is self.kind:
                raise ConfigError(f"{variable(other.name)} and {variable(self.name)} are both {number}")

    def claim(self, settings: Settings) -> None:
        """Fail when somebody has it."""
        host, number = self.place(settings)
        with socket.socket(socket.AF_INET, self.kind) as probe:
            if self.kind is socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, number))
            except OSError as error:
                setting = variable(self.name)
                if error.errno == errno.EADDRINUSE:
                    raise ConfigError(f"port {number} is taken; stop what uses it or set {setting}") from error
                where = f"{host}:{number} ({error.strerror})"
                raise ConfigError(f"cannot listen on {where}; see {variable(self.host)} and {setting}") from error


def keep_metrics_here(settings: Settings) -> Settings:
    """Return settings whose metrics listen on loopback, unless somebody named an address: they have no login."""
    if "metrics_host" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"metrics_host": _LOOPBACK})


def claim(settings: Settings) -> None:
    """Fail at once, and with the setting's name, when a port is taken: loading the models takes seconds."""
    wanted = _wanted(settings)
    for at, port in enumerate(wanted):
        port.part(settings, wanted[:at])
    for port in wanted:
        # Where nobody asked for the port of metrics and another fleet has it, this one goes on without.
        if port.name != "metrics_port" or port.name in settings.model_fields_set:
            port.claim(settings)


def table(settings: Settings) -> str:
    """Return the lines that say what `fleet up` listens on, who can reach it, and who is served there."""
    rows = [("port", "reached by", "for", "who is served")]
    for port in _wanted(settings):
        host, number = port.place(settings)
        protocol = "udp" if port.kind is socket.SOCK_DGRAM else "tcp"
        rows.append((f"{number}/{protocol}", _reach(host), port.purpose, _admitted(port, settings)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _wanted(settings: Settings) -> list[Port]:
    wanted = [
        Port("udp_port", "udp_host", "audio of devices", socket.SOCK_DGRAM),
        Port("http_port", "http_host", "bootstrap of devices, API"),
        Port("cloud_port", "cloud_host", "LLM Gateway API, test page"),
    ]
    if settings.metrics_port:
        wanted.append(Port("metrics_port", "metrics_host", "metrics and health"))
    if settings.tls_cert is not None:
        wanted.append(Port("https_port", "http_host", "bootstrap of devices, API, with TLS"))
    if settings.mqtt_url is None:
        wanted.append(Port("mqtt_port", "mqtt_host", "MQTT of devices"))
        if settings.tls_cert is not None:
            wanted.append(Port("mqtts_port", "mqtt_host", "MQTT of devices, with TLS"))
    return wanted


def _reach(host: str) -> str:
    if host == EVERYWHERE:
        return "every network"
    try:
        return "this machine" if ipaddress.ip_address(host).is_loopback else host
    except ValueError:
        return host


def _admitted(port: Port, settings: Settings) -> str:
    match port.name:
        case "udp_port":
            return "devices with a session key"
        case "http_port" | "https_port":
            return _POLICIES[settings.activation]
        case "cloud_port":
            return "who has a token" if settings.gateway_tokens else "EVERYBODY (FLEET_GATEWAY_TOKENS is off)"
        case "metrics_port":
            return "everybody who reaches it"
        case _:
            return "devices with a password"


_POLICIES = {
    "open": "EVERYBODY, as any device (FLEET_ACTIVATION=open)",
    "first": "the first client of each MAC; others need a code (FLEET_ACTIVATION=first)",
    "code": "devices that were bound with their code (FLEET_ACTIVATION=code)",
    "closed": "devices that were bound before (FLEET_ACTIVATION=closed)",
}

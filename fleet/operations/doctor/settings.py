"""The settings themselves: what contradicts itself, and what is missing."""

import ipaddress
from collections.abc import Iterator

from fleet.operations.doctor.case import Case
from fleet.operations.doctor.finding import Finding, Findings, judge, ok, skipped, warning, wrong
from fleet.settings import Settings, variable

_PRIVATE_NAMES = (".local", ".test", ".internal", ".home.arpa", ".lan")


async def examine(case: Case) -> Findings:
    settings = case.settings
    yield _keys(case)
    if fault := case.faults.get("mqtt_url"):
        yield wrong("settings.broker", str(fault), "Correct FLEET_MQTT_URL, or the file of FLEET_TLS_CA")
    if settings.udp_public:
        host, _, port = settings.udp_public.rpartition(":")
        right = bool(host) and port.isdigit() and 0 < int(port) < 65536
        told = (f"this edge is reached at {settings.udp_public}", f"FLEET_UDP_PUBLIC is {settings.udp_public}")
        yield judge("settings.audio", right, told, "FLEET_UDP_PUBLIC must be host:port", wrong)
    if settings.tls_cert is not None and settings.public_host is None:
        advice = "Set FLEET_PUBLIC_HOST to a name in the certificate"
        yield warning("settings.public", "there is a certificate, but no name for devices", advice)
    public = settings.public_host is not None and not _is_private(settings.public_host)
    yield judge(
        "settings.activation",
        settings.activation != "open",
        (
            f"{variable('activation')} is {settings.activation}",
            "everybody who reaches the api gets any device's password",
        ),
        "Set FLEET_ACTIVATION=first, code or closed (docs/operating/ownership.md); open is for laboratories",
        warning,
    )
    for finding in _open_ports(settings, public=public):
        yield finding


def _open_ports(settings: Settings, *, public: bool) -> Iterator[Finding]:
    """Examine what asks for no login; `public` says that devices reach this site by a public name."""
    gateway = f"{settings.cloud_host}:{settings.cloud_port}"
    yield judge(
        "settings.gateway",
        settings.gateway_tokens or not _is_exposed(settings.cloud_host, public=public),
        (
            "clients of the gateway need a token" if settings.gateway_tokens else f"the gateway listens on {gateway}",
            f"the gateway listens on {gateway}, and whoever reaches it uses the model and the server's tools",
        ),
        "Set FLEET_GATEWAY_TOKENS=true and give out tokens (`fleet tokens`), or CLOUD_HOST to a private address",
        warning,
    )
    metrics = f"{settings.metrics_host}:{settings.metrics_port}"
    yield judge(
        "settings.metrics",
        not settings.metrics_port or not _is_exposed(settings.metrics_host, public=public),
        (f"metrics are served on {metrics}", f"metrics are served on {metrics} to whoever reaches it"),
        "Set FLEET_METRICS_HOST to an address that only your monitoring reaches, or close the port in the firewall",
        warning,
    )


def _is_exposed(listening: str, *, public: bool) -> bool:
    """Whether the internet may reach an address on which we listen."""
    try:
        address = ipaddress.ip_address(listening)
    except ValueError:
        return False
    return address.is_global or (address.is_unspecified and public)


def _keys(case: Case) -> Finding:
    if fault := case.faults.get("keys"):
        return wrong(
            "settings.keys", str(fault), "Correct FLEET_KEYS or FLEET_KEYS_FILE: `id:key`, keys of 16 characters"
        )
    if case.keys is None:
        return skipped("settings.keys", "no keys are named, and no `fleet up` with its own runs here", "set FLEET_KEYS")
    return ok("settings.keys", f"keys: {', '.join(case.keys.ids)}; the first one signs")


def _is_private(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_NAMES)

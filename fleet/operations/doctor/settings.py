"""The settings themselves: what contradicts itself, and what is missing."""

import ipaddress

from fleet.operations.doctor.case import Case
from fleet.operations.doctor.finding import Finding, Findings, judge, ok, skipped, warning, wrong
from fleet.settings import variable

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
        settings.activation != "open" or not public,
        (
            f"{variable('activation')} is {settings.activation}",
            "everybody who reaches the api gets any device's password",
        ),
        "On the internet set FLEET_ACTIVATION=code or closed (SECURITY.md)",
        warning,
    )


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

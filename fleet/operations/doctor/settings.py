"""Check the settings: contradictions and missing values."""

import asyncio
import ipaddress

from fleet.adapters.net.own_address import own_address
from fleet.core.finding import Finding, Findings, judge, ok, problem, skipped, warning, wrong
from fleet.ground.settings import variable
from fleet.ground.settings.fields import ANY_ADDRESS
from fleet.operations.doctor.site import SiteUnderTest
from fleet.run.start_check import public_names, resolution_fault

_PROBE_SECONDS = 1.0


async def examine(site: SiteUnderTest) -> Findings:
    settings = site.settings
    yield ok("settings.source", f"examined are {site.source}")
    yield _keys(site)
    if fault := site.faults.get("mqtt_url"):
        yield wrong("settings.broker", str(fault), "Correct FLEET_MQTT_URL, or the file of FLEET_TLS_CA")
    if settings.udp_public:
        host, _, port = settings.udp_public.rpartition(":")
        right = bool(host) and port.isdigit() and 0 < int(port) < 65536
        message = (f"devices send audio to {settings.udp_public}", f"FLEET_UDP_PUBLIC is {settings.udp_public}")
        yield judge("settings.audio", right, message, "FLEET_UDP_PUBLIC must be host:port", wrong)
    for name, host in public_names(settings):
        if why := await resolution_fault(host):
            advice = f"Correct {name}, or add the name to DNS. Devices need an IPv4 address (A record)"
            yield problem("settings.names", f"{name}: {host} cannot be resolved ({why})", advice)
    if settings.tls_cert is not None and settings.public_host is None:
        advice = "Set FLEET_PUBLIC_HOST to a name in the certificate"
        yield warning("settings.public", "there is a certificate, but no public name", advice)
    yield judge(
        "settings.activation",
        settings.activation != "open",
        (
            f"{variable('activation')} is {settings.activation}",
            "FLEET_ACTIVATION is open, so the api gives every client the password of any device",
        ),
        "Set FLEET_ACTIVATION=first, code or closed (docs/operating/ownership.md); use open only for tests",
        warning,
    )
    yield judge(
        "settings.gateway",
        settings.gateway_tokens or not await _is_exposed(settings.cloud_host, settings.cloud_port),
        (
            "text clients need a token, or can connect only from this machine or its network",
            "text clients need no token, and the gateway listens on a public address",
        ),
        "Set FLEET_GATEWAY_TOKENS=true, or CLOUD_HOST=127.0.0.1 behind a proxy (docs/operating/gateway.md)",
        warning,
    )
    yield judge(
        "settings.metrics",
        not settings.metrics_port or not await _is_exposed(settings.metrics_host, settings.metrics_port),
        (
            "metrics can be read only from this machine or its network",
            "metrics can be read on a public address without a password",
        ),
        "Set FLEET_METRICS_HOST to a private address, or 127.0.0.1",
        warning,
    )


async def _is_exposed(host: str, port: int) -> bool:
    """Whether a port is reachable on a public address; if it listens on all addresses, try this machine's own one."""
    if host != ANY_ADDRESS:
        return _is_global(host)
    own = own_address()
    if not _is_global(own):
        return False
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            _, writer = await asyncio.open_connection(own, port)
    except OSError:  # TimeoutError is one
        return False
    writer.close()
    return True


def _is_global(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _keys(site: SiteUnderTest) -> Finding:
    if fault := site.faults.get("keys"):
        return wrong(
            "settings.keys",
            str(fault),
            "Correct FLEET_KEYS or FLEET_KEYS_FILE: `id:key`, keys of at least 16 characters",
        )
    if site.keys is None:
        message = "no keys are set, and no `fleet up` with its own keys runs here"
        return skipped("settings.keys", message, "set FLEET_KEYS")
    return ok("settings.keys", f"keys: {', '.join(site.keys.ids)}; the first one signs")

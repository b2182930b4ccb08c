"""Check certificates: the files of the settings, and the certificates that servers show to devices."""

import asyncio
import ipaddress
import ssl
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509

from fleet.adapters.net.tls.certificate import WARNING, ServerCertificate
from fleet.core.finding import Finding, Findings, ok, problem, skipped, warning
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.operations.doctor.site import SiteUnderTest

_SECONDS = 4.0
_MOST_STEPS = 10
_RENEW = (
    "Renew it, with all certificates between it and its authority (fullchain.pem); let an ACME client renew it "
    "automatically"
)


async def examine(site: SiteUnderTest) -> Findings:
    settings = site.settings
    if settings.tls_cert is None or settings.tls_key is None:
        yield skipped(
            "certificates.file", "no certificate is set: MQTT and HTTP are plain, or a broker and a proxy use their own"
        )
    else:
        for finding in _examine_files(settings, settings.tls_cert, settings.tls_key, site.now()):
            yield finding
    for place in await _endpoints(site):
        yield await _examine_shown(site, *place)


def _examine_files(settings: Settings, path: Path, key: Path, now: datetime) -> list[Finding]:
    try:
        pair = ServerCertificate(path, key)
        chain = x509.load_pem_x509_certificates(path.read_bytes())
    except (ConfigError, OSError, ValueError) as error:
        advice = "FLEET_TLS_KEY must be the key of FLEET_TLS_CERT, both in PEM, the key without a password"
        return [problem("certificates.file", str(error), advice)]
    hosts = [host for host in _hosts(settings) if host]
    life = _judge_time("certificates.time", str(path), chain[0], now, "FLEET_TLS_CERT")
    found = [ok("certificates.file", f"{path} and its key fit together"), life]
    found += [_judge_name(host, chain[0]) for host in dict.fromkeys(hosts)]
    # An invalid time makes the chain invalid too; one finding is enough.
    if life.verdict != "problem":
        found.append(_judge_chain(pair.context, hosts[0] if hosts else None, settings.tls_ca))
    return found


def _hosts(settings: Settings) -> list[str]:
    """Return the names by which devices reach the servers with this certificate."""
    web = settings.http_public if settings.http_public and settings.http_public.startswith("https:") else ""
    endpoint = settings.mqtt_public or ""
    secure = endpoint.partition(":")[0] if endpoint.endswith(":8883") else ""
    return [settings.public_host or "", secure, urlsplit(web).hostname or ""]


def _judge_time(check: str, where: str, one: x509.Certificate, now: datetime, setting: str) -> Finding:
    begin, end = one.not_valid_before_utc, one.not_valid_after_utc
    if now > end:
        return problem(check, f"{where}: the certificate expired on {end:%Y-%m-%d}", f"{_RENEW}: {setting}")
    if now < begin:
        return problem(
            check, f"{where}: the certificate is not valid before {begin:%Y-%m-%d %H:%M}", "Check this machine's clock"
        )
    left = f"{where}: the certificate is valid until {end:%Y-%m-%d}"
    return warning(check, left, f"{_RENEW}: {setting}") if end - now < WARNING else ok(check, left)


def _judge_name(host: str, one: x509.Certificate) -> Finding:
    if _covers(one, host):
        return ok("certificates.name", f"{host} is in the certificate")
    advice = (
        "Devices verify the name: FLEET_PUBLIC_HOST, FLEET_MQTT_PUBLIC and FLEET_HTTP_PUBLIC must be names in "
        "FLEET_TLS_CERT"
    )
    return problem("certificates.name", f"{host} is not in the certificate", advice)


def _covers(one: x509.Certificate, host: str) -> bool:
    try:
        names = one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    try:
        return ipaddress.ip_address(host) in names.get_values_for_type(x509.IPAddress)
    except ValueError:
        known = {name.lower() for name in names.get_values_for_type(x509.DNSName)}
        return host.lower() in known or f"*.{host.lower().partition('.')[2]}" in known


def _judge_chain(shown: ssl.SSLContext, host: str | None, more: Path | None) -> Finding:
    """Whether the files lead from the certificate to an authority that this machine knows."""
    if host is None:
        return skipped("certificates.chain", "the name of this server is not known", "set FLEET_PUBLIC_HOST")
    fault = _shake_hands(shown, host, more)
    if not fault:
        return ok("certificates.chain", "it leads to an authority that this machine trusts")
    return warning(
        "certificates.chain",
        f"this machine does not trust the certificate: {fault}",
        "Devices trust public authorities only and fetch no certificates: FLEET_TLS_CERT must hold all certificates up "
        "to the authority (fullchain.pem). With a private authority only simulators can connect; put it into "
        "FLEET_TLS_CA",
    )


def _shake_hands(shown: ssl.SSLContext, host: str, more: Path | None) -> str:
    """Return why a client on this machine does not trust a server; empty if it does. Uses no network."""
    trusting = ssl.create_default_context()
    if more is not None:
        trusting.load_verify_locations(more)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(back, there, server_hostname=host)
    server = shown.wrap_bio(there, back, server_side=True)
    waiting = [client, server]
    for _ in range(_MOST_STEPS):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message
            except ssl.SSLError as error:
                return str(error.reason or error)
    return ""


async def _endpoints(site: SiteUnderTest) -> list[tuple[str, int, str]]:
    """Return where devices connect with TLS, and the setting that leads there."""
    found: list[tuple[str, int, str]] = []
    endpoint = (await site.bootstrapped()).endpoint
    if endpoint is not None and endpoint[1] == 8883:
        found.append((*endpoint, "FLEET_TLS_CERT of the front, or certfile of the broker"))
    if (
        site.broker is not None
        and site.broker.tls
        and (site.broker.host, site.broker.port) not in [one[:2] for one in found]
    ):
        found.append((site.broker.host, site.broker.port, "the broker's certfile"))
    web = urlsplit(site.settings.http_public or "")
    if web.scheme == "https" and web.hostname:
        found.append((web.hostname, web.port or 443, "FLEET_TLS_CERT of the api, or its proxy's"))
    return found


async def _examine_shown(site: SiteUnderTest, host: str, port: int, setting: str) -> Finding:
    where = f"{host}:{port}"
    try:
        shown = x509.load_der_x509_certificate(await _fetch(host, port))
    except (OSError, TimeoutError, ValueError) as error:
        return skipped(
            "certificates.shown",
            f"{where} shows no certificate: {str(error) or 'no answer'}",
            "see broker.door, api.reach",
        )
    if not _covers(shown, host):
        return problem("certificates.shown", f"{where} shows a certificate for other names", f"Correct {setting}")
    return _judge_time("certificates.shown", where, shown, site.now(), setting)


async def _fetch(host: str, port: int) -> bytes:
    """Return the certificate that a server shows, also an invalid one."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with asyncio.timeout(_SECONDS):
        _, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    return bytes(shown or b"")

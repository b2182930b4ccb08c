"""Check the api: do devices reach it, and does bootstrap give them credentials?"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from fleet.adapters.http_client import LARGEST_ERROR, BoundedClient
from fleet.adapters.redis.access.admissions import Admissions
from fleet.core.finding import Finding, Findings, ok, problem, skipped
from fleet.ground.errors import Unavailable
from fleet.ground.settings.tls import LOOPBACK
from fleet.operations.doctor.ask_bootstrap import SECONDS, BootstrapReply, ask_bootstrap
from fleet.operations.doctor.site import SiteUnderTest

_PUBLIC = (
    "Check that `fleet api` runs. FLEET_HTTP_PUBLIC (else FLEET_PUBLIC_HOST and FLEET_HTTP_PORT, FLEET_HTTPS_PORT) "
    "must lead to it"
)


@dataclass(frozen=True, slots=True)
class _ApiAddress:
    url: str
    named: bool
    """True: the settings name it. False: it is a guess, so a failure is no problem."""


async def examine(site: SiteUnderTest) -> Findings:
    """Ask bootstrap, and store the answer for the other examinations."""
    try:
        async with web(site) as http:
            async for finding in _examine(site, http):
                yield finding
    finally:
        if not site.bootstrap.done():
            site.bootstrap.set_result(BootstrapReply())


@asynccontextmanager
async def web(site: SiteUnderTest) -> AsyncIterator[BoundedClient]:
    """Yield an HTTP client that trusts the same authorities as fleet."""
    context = ssl.create_default_context()
    if site.settings.tls_ca is not None:
        context.load_verify_locations(site.settings.tls_ca)
    async with BoundedClient(LARGEST_ERROR, SECONDS, verify=context, trust_env=False) as http:
        yield http


async def _examine(site: SiteUnderTest, http: BoundedClient) -> Findings:
    for address in _addresses(site):
        try:
            reply = await _ask(site, http, address)
        except Unavailable as error:
            yield _unreachable(address, error)
            continue
        site.bootstrap.set_result(reply)
        yield ok("api.reach", f"{address.url} answers")
        yield _judge(site, reply)
        return


def _addresses(site: SiteUnderTest) -> list[_ApiAddress]:
    settings = site.settings
    local = _ApiAddress(f"http://{LOOPBACK}:{settings.http_port}", site.up)
    if settings.http_public:
        return [_ApiAddress(settings.http_public, True), local]
    if settings.public_host and settings.tls_cert:
        return [_ApiAddress(f"https://{settings.public_host}:{settings.https_port}", True), local]
    if settings.public_host:
        return [_ApiAddress(f"http://{settings.public_host}:{settings.http_port}", True), local]
    return [local]


async def _ask(site: SiteUnderTest, http: BoundedClient, address: _ApiAddress) -> BootstrapReply:
    """Ask bootstrap; if it refuses the test device, bind the device until the end of the examination."""
    mac = site.macs[0]
    reply = await ask_bootstrap(http, address.url, mac, site.client, site.now)
    if reply.mqtt is None and reply.status in (200, 403) and site.store is not None:
        await Admissions(site.store).bind(mac, site.client)
        again = await ask_bootstrap(http, address.url, mac, site.client, site.now)
        return replace(again, ahead=reply.ahead, within=reply.within)
    return reply


def _unreachable(address: _ApiAddress, error: Unavailable) -> Finding:
    message = f"{address.url}: {error}"
    if not address.named:
        return skipped("api.reach", message, "set FLEET_HTTP_PUBLIC if the api runs elsewhere")
    if "CERTIFICATE" in str(error).upper():
        advice = (
            "Devices verify the certificate too: FLEET_TLS_CERT must be valid and contain the host of FLEET_HTTP_PUBLIC"
        )
        return problem("api.reach", message, advice)
    return problem("api.reach", message, _PUBLIC)


def _judge(site: SiteUnderTest, reply: BootstrapReply) -> Finding:
    if reply.mqtt is not None:
        return ok("api.bootstrap", f"bootstrap sends devices to {reply.mqtt.endpoint}")
    if reply.status == 429:
        return problem(
            "api.bootstrap",
            "bootstrap refuses the doctor's request: too many requests (429)",
            "Wait a minute, or raise FLEET_RATE_ADDRESS",
        )
    if reply.status == 503:
        return problem(
            "api.bootstrap",
            "bootstrap answers 503",
            "The api cannot use Redis: see redis.role and redis.writes, and check the api's FLEET_REDIS_URL",
        )
    if reply.status in (200, 403) and site.store is None:
        return skipped(
            "api.bootstrap",
            "the policy requires that devices are bound first",
            "set FLEET_REDIS_URL, so that the doctor can bind its own device",
        )
    advice = (
        "See the api's log for the reason. The api must have the same FLEET_REDIS_URL and FLEET_SHARDS as this command"
    )
    return problem("api.bootstrap", f"bootstrap answers {reply.status} and gives no credentials", advice)

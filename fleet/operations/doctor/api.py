"""The api: do devices reach it, and does bootstrap give them credentials?"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from fleet.adapters.http_client import LARGEST_ERROR, BoundedClient
from fleet.adapters.redis.access.admissions import Admissions
from fleet.ground.errors import Unavailable
from fleet.ground.settings.tls import LOOPBACK
from fleet.operations.doctor.ask_bootstrap import SECONDS, BootstrapReply, ask_bootstrap
from fleet.operations.doctor.finding import Finding, Findings, ok, problem, skipped
from fleet.operations.doctor.site import SiteUnderTest

_PUBLIC = (
    "Is `fleet api` running? FLEET_HTTP_PUBLIC (else FLEET_PUBLIC_HOST and FLEET_HTTP_PORT, FLEET_HTTPS_PORT) "
    "must lead to it"
)


@dataclass(frozen=True, slots=True)
class _Place:
    url: str
    named: bool
    """Whether the settings name it, or it is a guess."""


async def examine(site: SiteUnderTest) -> Findings:
    """Ask bootstrap, and keep the answer for the other examinations."""
    try:
        async with web(site) as http:
            async for finding in _examine(site, http):
                yield finding
    finally:
        if not site.bootstrap.done():
            site.bootstrap.set_result(BootstrapReply())


@asynccontextmanager
async def web(site: SiteUnderTest) -> AsyncIterator[BoundedClient]:
    """Give an HTTP client that trusts the same authorities as fleet itself."""
    context = ssl.create_default_context()
    if site.settings.tls_ca is not None:
        context.load_verify_locations(site.settings.tls_ca)
    async with BoundedClient(LARGEST_ERROR, SECONDS, verify=context, trust_env=False) as http:
        yield http


async def _examine(site: SiteUnderTest, http: BoundedClient) -> Findings:
    places = _places(site)
    for place in places:
        try:
            met = await _meet(site, http, place)
        except Unavailable as error:
            yield _shut(place, error)
            continue
        site.bootstrap.set_result(met)
        yield ok("api.reach", f"{place.url} answers")
        yield _judge(site, met)
        return


def _places(site: SiteUnderTest) -> list[_Place]:
    settings = site.settings
    local = _Place(f"http://{LOOPBACK}:{settings.http_port}", site.up)
    if settings.http_public:
        return [_Place(settings.http_public, True), local]
    if settings.public_host and settings.tls_cert:
        return [_Place(f"https://{settings.public_host}:{settings.https_port}", True), local]
    if settings.public_host:
        return [_Place(f"http://{settings.public_host}:{settings.http_port}", True), local]
    return [local]


async def _meet(site: SiteUnderTest, http: BoundedClient, place: _Place) -> BootstrapReply:
    """Ask bootstrap; if it refuses the test device, bind it for the time of the examination."""
    mac = site.macs[0]
    met = await ask_bootstrap(http, place.url, mac, site.client, site.now)
    if met.mqtt is None and met.status in (200, 403) and site.store is not None:
        await Admissions(site.store).bind(mac, site.client)
        again = await ask_bootstrap(http, place.url, mac, site.client, site.now)
        return replace(again, ahead=met.ahead, within=met.within)
    return met


def _shut(place: _Place, error: Unavailable) -> Finding:
    message = f"{place.url}: {error}"
    if not place.named:
        return skipped("api.reach", message, "set FLEET_HTTP_PUBLIC if the api runs elsewhere")
    if "CERTIFICATE" in str(error).upper():
        advice = "Devices check it too: FLEET_TLS_CERT must be valid, and name the host of FLEET_HTTP_PUBLIC"
        return problem("api.reach", message, advice)
    return problem("api.reach", message, _PUBLIC)


def _judge(site: SiteUnderTest, met: BootstrapReply) -> Finding:
    if met.mqtt is not None:
        return ok("api.bootstrap", f"devices are sent to {met.mqtt.endpoint}")
    if met.status == 429:
        return problem(
            "api.bootstrap", "bootstrap refuses us: too many requests (429)", "FLEET_RATE_ADDRESS limits them"
        )
    if met.status == 503:
        return problem("api.bootstrap", "bootstrap answers 503", "The api does not reach Redis: its FLEET_REDIS_URL")
    if met.status in (200, 403) and site.store is None:
        return skipped(
            "api.bootstrap", "devices must be bound first", "with FLEET_REDIS_URL the doctor can bind its own"
        )
    advice = "The api's log says why. It must have the FLEET_REDIS_URL and FLEET_SHARDS that are set here"
    return problem("api.bootstrap", f"bootstrap answers {met.status} and gives no credentials", advice)

"""The api: do devices reach it, and are they told what they need?"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import httpx2

from fleet.adapters.http_bounds import LARGEST_ERROR, bounded_client
from fleet.adapters.redis.access.admissions import Admissions
from fleet.ground.errors import Unavailable
from fleet.ground.settings.tls import LOOPBACK
from fleet.operations.doctor.case import Case
from fleet.operations.doctor.finding import Finding, Findings, ok, problem, skipped
from fleet.operations.doctor.visit import SECONDS, Visit, visit

_PUBLIC = (
    "Is `fleet api` running? FLEET_HTTP_PUBLIC (else FLEET_PUBLIC_HOST and FLEET_HTTP_PORT, FLEET_HTTPS_PORT) "
    "must lead to it"
)


@dataclass(frozen=True, slots=True)
class _Place:
    url: str
    named: bool
    """Whether the settings name it, or it is a guess."""


async def examine(case: Case) -> Findings:
    """Ask bootstrap, and tell the others what it said."""
    try:
        async with web(case) as http:
            async for finding in _examine(case, http):
                yield finding
    finally:
        if not case.visit.done():
            case.visit.set_result(Visit())


@asynccontextmanager
async def web(case: Case) -> AsyncIterator[httpx2.AsyncClient]:
    """Give an HTTP client that believes what fleet's own connections believe."""
    context = ssl.create_default_context()
    if case.settings.tls_ca is not None:
        context.load_verify_locations(case.settings.tls_ca)
    async with bounded_client(LARGEST_ERROR, verify=context, trust_env=False, timeout=SECONDS) as http:
        yield http


async def _examine(case: Case, http: httpx2.AsyncClient) -> Findings:
    places = _places(case)
    for place in places:
        try:
            met = await _meet(case, http, place)
        except Unavailable as error:
            yield _shut(place, error)
            continue
        case.visit.set_result(met)
        yield ok("api.reach", f"{place.url} answers")
        yield _judge(case, met)
        return


def _places(case: Case) -> list[_Place]:
    settings = case.settings
    local = _Place(f"http://{LOOPBACK}:{settings.http_port}", case.up)
    if settings.http_public:
        return [_Place(settings.http_public, True), local]
    if settings.public_host and settings.tls_cert:
        return [_Place(f"https://{settings.public_host}:{settings.https_port}", True), local]
    if settings.public_host:
        return [_Place(f"http://{settings.public_host}:{settings.http_port}", True), local]
    return [local]


async def _meet(case: Case, http: httpx2.AsyncClient, place: _Place) -> Visit:
    """Ask; a device that is not admitted is bound by hand, for as long as the examination lasts."""
    mac = case.macs[0]
    met = await visit(http, place.url, mac, case.client, case.now)
    if met.mqtt is None and met.status in (200, 403) and case.store is not None:
        await Admissions(case.store).bind(mac, case.client)
        again = await visit(http, place.url, mac, case.client, case.now)
        return replace(again, ahead=met.ahead, within=met.within)
    return met


def _shut(place: _Place, error: Unavailable) -> Finding:
    told = f"{place.url}: {error}"
    if not place.named:
        return skipped("api.reach", told, "set FLEET_HTTP_PUBLIC if the api runs elsewhere")
    if "CERTIFICATE" in str(error).upper():
        advice = "Devices check it too: FLEET_TLS_CERT must be valid, and name the host of FLEET_HTTP_PUBLIC"
        return problem("api.reach", told, advice)
    return problem("api.reach", told, _PUBLIC)


def _judge(case: Case, met: Visit) -> Finding:
    if met.mqtt is not None:
        return ok("api.bootstrap", f"devices are sent to {met.mqtt.endpoint}")
    if met.status == 429:
        return problem(
            "api.bootstrap", "bootstrap refuses us: too many requests (429)", "FLEET_RATE_ADDRESS limits them"
        )
    if met.status == 503:
        return problem("api.bootstrap", "bootstrap answers 503", "The api does not reach Redis: its FLEET_REDIS_URL")
    if met.status in (200, 403) and case.store is None:
        return skipped(
            "api.bootstrap", "devices must be bound first", "with FLEET_REDIS_URL the doctor can bind its own"
        )
    advice = "The api's log says why. It must have the FLEET_REDIS_URL and FLEET_SHARDS that are set here"
    return problem("api.bootstrap", f"bootstrap answers {met.status} and gives no credentials", advice)

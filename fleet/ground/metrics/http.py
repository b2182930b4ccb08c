"""Connections, requests and refusals of api, front and gateway."""

import re
from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import slug, slugs
from fleet.ground.metrics.gauge import GaugeMetric

_ROUTE: Final = re.compile(r"(\S+) (\d{3})")
ROUTES: Final = (
    "/devices/{mac}/input",
    "/devices/{mac}/input/{turn}",
    "/healthz",
    "/internal/mqtt/auth",
    "/readyz",
    "/vision/explain",
    "/xiaozhi/firmware/{board}/{name}.bin",
    "/xiaozhi/ota",
    "/xiaozhi/ota/",
    "/xiaozhi/ota/activate",
    "elsewhere",
)
STATUSES: Final = tuple(
    str(code) for code in (400, 401, 403, 404, 405, 408, 409, 411, 413, 415, 422, 429, 500, 503, 504)
)
API_REFUSALS: Final = slugs(
    [
        "activation: wrong proof",
        *(f"address: {route}" for route in ("activation", "bootstrap", "firmware", "invitation", "operator", "photo")),
        "answer not read",
        "body: broken off",
        "body: slow",
        "bootstrap: another owner",
        "bootstrap: no place",
        "bootstrap: no place for its address",
        "bootstrap: not bound",
        "bootstrap: not on the list",
        "bootstrap: revoked",
        "claims: crowded out",
        *(f"device: {route}" for route in ("activation", "bootstrap", "input", "photo")),
        "devices: crowded out",
        "firmware: no such image",
        "firmware: offered before",
        "malformed request",
        "mqtt login: malformed",
        "mqtt login: refused",
        "mqtt login: wrong token",
        "no client id",
        "no host",
        "no mac",
        "no request",
        "operator: guesses",
        "operator: no tokens",
        "operator: scope",
        "operator: token",
        "photo: busy",
        "photo: model",
        "photo: no model",
        "photo: token",
        "photo: upload",
        "store away",
        "tls",
        "tls full",
        "too many connections",
    ]
)
GATEWAY: Final = slugs(
    [
        "crowded out",
        "guesses",
        "head too large",
        "malformed request",
        "message too slow",
        "no request",
        "no tokens",
        "not closed",
        "not read",
        "origin",
        "protocol",
        "revoked",
        "scope",
        "silent",
        "tls",
        "tls full",
        "token",
        "too large",
        "too many connections",
        "too many connections of an address",
        "too many messages",
        "too many pings",
    ]
)
FRONT: Final = slugs(
    [
        "broker lost",
        "broker malformed",
        "broker oversize",
        "broker refused",
        "broker stuck",
        "broker unreachable",
        "client id",
        "closed",
        "crowded out",
        "device stuck",
        "early",
        "flood",
        "foreign filter",
        "foreign topic",
        "full",
        "left",
        "login",
        "lost",
        "malformed",
        "no connect",
        "no greeting",
        "not authorised",
        "outdated",
        "oversize",
        "presence lost",
        "protocol",
        "revoked",
        "silent",
        "stray acknowledgement",
        "taken over",
        "tls",
        "tls full",
        "too many devices",
        "version",
    ]
)


def _split(key: str) -> tuple[str, ...] | None:
    match = _ROUTE.fullmatch(key)
    return (match[1], match[2]) if match else None


def _split_other(key: str) -> tuple[str, ...] | None:
    return None if _ROUTE.fullmatch(key) else (slug(key),)


api_requests: Final = CounterMetric(
    "fleet_api_requests_refused",
    "Requests answered with an error, by route and status.",
    "api",
    {"route": ROUTES, "status": STATUSES},
    split=_split,
)
api_refusals: Final = CounterMetric(
    "fleet_api_refusals",
    "Requests that the api refused, and connections that it closed, by reason.",
    "api",
    {"reason": API_REFUSALS},
    split=_split_other,
)
front_events: Final = CounterMetric(
    "fleet_front_events",
    "Refusals, drops and ended connections of the front, by reason; `left` and `lost` are normal ends.",
    "front",
    {"reason": FRONT},
)
front_connections: Final = GaugeMetric("fleet_front_connections", "Device connections through this front.", "front")
gateway_connections: Final = GaugeMetric("fleet_gateway_connections", "Client connections of this gateway.", "gateway")
gateway_refusals: Final = CounterMetric(
    "fleet_gateway_refusals",
    "Frames of clients answered with an error, by its code.",
    "gateway",
    {
        "code": (
            "internal_error",
            "invalid_message",
            "session_error",
            "tool_registration_failed",
            "unknown_message_type",
        )
    },
)
gateway_turned_away: Final = CounterMetric(
    "fleet_gateway_turned_away",
    "Connections that the gateway refused or closed, and messages beyond the rate, by reason.",
    "gateway",
    {"reason": GATEWAY},
)

"""Connections, requests and refusals of api, front and gateway."""

import re
from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import label_values, slug, slugs
from fleet.ground.metrics.gauge import GaugeMetric

_ROUTE: Final = re.compile(r"(\S+) (\d{3})")
ROUTES: Final = label_values("api_routes")
STATUSES: Final = tuple(
    str(code) for code in (400, 401, 403, 404, 405, 408, 409, 411, 413, 415, 422, 429, 500, 503, 504)
)
API_REFUSALS: Final = slugs(label_values("api_refusals"))
GATEWAY: Final = slugs(label_values("gateway_turned_away"))
FRONT: Final = slugs(label_values("front_events"))


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
    {"code": label_values("gateway_refusals")},
)
gateway_turned_away: Final = CounterMetric(
    "fleet_gateway_turned_away",
    "Connections that the gateway refused or closed, and messages beyond the rate, by reason.",
    "gateway",
    {"reason": GATEWAY},
)

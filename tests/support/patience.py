"""Longer limits for what waits for Redis, the database or another task: a busy machine must not change the outcome."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

REDIS = (
    "fleet.adapters.redis.client.client.CONNECT_SECONDS",
    "fleet.adapters.redis.client.retries.LIMIT_SECONDS",
)
GATEWAY = (
    "fleet.roles.gateway.client_session.STORE_SECONDS",
    "fleet.roles.gateway.port.http_answers.READY_SECONDS",
    "fleet.roles.gateway.turns.turn.STORE_SECONDS",
)
MQTT = (
    "fleet.adapters.net.mqtt.connection._CLOSE_SECONDS",
    "fleet.adapters.net.mqtt.session.CONNECT_SECONDS",
    "fleet.adapters.net.mqtt.session.KEEPALIVE_SECONDS",
)
WORKER = (*MQTT, "fleet.roles.worker.ownership.lease_holder._END_SECONDS")
TURNS = (
    "fleet.roles.worker.sessions.discovery.ANSWER_SECONDS",
    "fleet.roles.worker.turns.turn._CUT_SECONDS",
    "fleet.roles.worker.turns.turns._CANCEL_SECONDS",
)
METRICS = (
    "fleet.adapters.net.http.metrics_server.LIMIT_SECONDS",
    "fleet.adapters.net.http.readiness.LIMIT_SECONDS",
)
CONTROL = (
    "fleet.roles.control.agents.voice_sample.SAMPLE_SECONDS",
    "fleet.roles.control.request_pieces.SILENT_SECONDS",
    "fleet.roles.control.routes.health.READY_SECONDS",
    "fleet.roles.control.routes.providers.TEST_SECONDS",
    "fleet.roles.control.routing.BODY_SECONDS",
)
API_STORE = (
    "fleet.roles.api.activation.STORE_SECONDS",
    "fleet.roles.api.activation._TRACE_SECONDS",
    "fleet.roles.api.bootstrap.STORE_SECONDS",
    "fleet.roles.api.firmware.STORE_SECONDS",
    "fleet.roles.api.vision._LOOKUP_SECONDS",
)
"""Those of `API` that bound what the store takes: a test of attacks keeps the others."""
API = (
    *API_STORE,
    "fleet.roles.api.body.BODY_SECONDS",
    "fleet.roles.api.health.READY_SECONDS",
    "fleet.roles.api.photo.UPLOAD_SECONDS",
)
SQL = (
    "fleet.adapters.sql.alert_events.STATEMENT_SECONDS",
    "fleet.adapters.sql.database.LOOK_SECONDS",
    "fleet.adapters.sql.database.STATEMENT_SECONDS",
    "fleet.adapters.sql.database.WAIT_SECONDS",
    "fleet.adapters.sql.device_matches._SECONDS",
    "fleet.adapters.sql.engines.STATEMENT_SECONDS",
    "fleet.adapters.sql.engines.WAIT_SECONDS",
    "fleet.adapters.sql.job_feed.STATEMENT_SECONDS",
    "fleet.adapters.sql.job_targets.BOUND_SECONDS",
)
EDGE_SECONDS = "TEST_EDGE_SECONDS"
"""Environment variable of an edge: so long it counts as alive though it does not say so (`patient_fleet`)."""


def lengthen(patch: "pytest.MonkeyPatch", limits: tuple[str, ...], seconds: float = 240.0) -> None:
    """Let limits of the product be so long. A test of a limit sets it anew."""
    for limit in limits:
        patch.setattr(limit, seconds)

"""Builds the api from the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.net.http.serving import HttpSettings, serve
from fleet.adapters.net.mqtt.emqx import expelling
from fleet.adapters.redis.access.policy import PolicyStore
from fleet.adapters.redis.access.watch import AccessWatch
from fleet.ground.metrics import bounds
from fleet.ground.metrics import http as metrics
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.api.app import build_app
from fleet.roles.api.settings import ApiSettings
from fleet.run.resources import ProcessResources
from fleet.run.start_check import checking_models, checking_names, photo_models
from fleet.run.vision import load_vision


@asynccontextmanager
async def api(resources: ProcessResources) -> AsyncIterator[HttpServer]:
    """Run the api during the block."""
    settings = resources.settings
    vision = load_vision(settings)
    now = datetime.now(UTC).timestamp()
    await PolicyStore(resources.store).begin(settings.activation, now, settings.renewal_days * 86_400)
    app = build_app(slice_of(settings, ApiSettings), resources.keys, resources.store, vision)
    try:
        async with (
            expelling(settings.emqx_api_url, settings.emqx_api_key, resources.keys) as expel,
            checking_models(*photo_models(settings)),
            checking_names(settings),
        ):
            access = AccessWatch(resources.store, resources.keys, settings.revocations_file, expel)
            async with running("access", access.run), serve(app, slice_of(settings, HttpSettings)) as server:
                with (
                    metrics.api_requests.following(app.counts),
                    metrics.api_refusals.following(app.counts, server.bounds.counts, server.counts),
                    bounds.following(
                        "http_connections", lambda: sum(server.bounds.here.values()), server.bounds.connections
                    ),
                    resources.readiness.requiring("listening", lambda: True),
                ):
                    yield server
    finally:
        if vision is not None:
            await vision.aclose()

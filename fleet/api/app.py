"""The api's routes."""

import asyncio

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from fleet.api.bootstrap import Bootstrap
from fleet.errors import Unavailable
from fleet.settings import Settings
from fleet.store.connect import Store
from fleet.store.devices import Devices
from fleet.wire.identity import Keys

READY_SECONDS = 1.0
"""A probe's own limit is seldom longer."""


def build_app(settings: Settings, keys: Keys, store: Store) -> FastAPI:
    """Return the api; it holds no state of its own."""
    app = FastAPI(title="fleet", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(Bootstrap(settings, keys, Devices(store)).router)

    @app.get("/healthz")
    async def alive() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz")
    async def ready() -> JSONResponse:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await store.ping()
        except (Unavailable, TimeoutError) as error:
            reason = str(error) or "Redis: no answer in time"
            return JSONResponse({"status": "unavailable", "reason": reason}, 503)
        return JSONResponse({"status": "ready"})

    return app

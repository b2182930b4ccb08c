"""The api's routes."""

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from fleet.api.bootstrap import Bootstrap
from fleet.errors import Unavailable
from fleet.settings import Settings
from fleet.store.connect import Store
from fleet.store.devices import Devices
from fleet.wire.identity import Keys


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
            await store.ask(store.client.ping())
        except Unavailable as error:
            return JSONResponse({"status": "unavailable", "reason": str(error)}, 503)
        return JSONResponse({"status": "ready"})

    return app

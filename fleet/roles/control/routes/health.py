"""`/healthz` and `/readyz`, for service managers and load balancers."""

import asyncio

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from fleet.adapters.redis.client.store import Store
from fleet.adapters.sql.database import Database
from fleet.ground.errors import Unavailable

READY_SECONDS = 1.0
"""A probe's own limit is seldom longer."""


class HealthRoutes:
    """Liveness, and readiness: both the database and Redis answer, and changes succeed.

    Args:
        router: Of the app.
        database: The database.
        store: Redis.
    """

    def __init__(self, router: APIRouter, database: Database, store: Store) -> None:
        self._database, self._store = database, store
        router.add_api_route("/healthz", self.alive, methods=["GET"], include_in_schema=False)
        router.add_api_route("/readyz", self.ready, methods=["GET"], include_in_schema=False)

    async def alive(self) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    async def ready(self) -> JSONResponse:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._database.ping()
                await self._store.ping_writes()
        except (Unavailable, TimeoutError):
            # The reason may name addresses, and the route is open: the log of the part that failed has it.
            return JSONResponse({"status": "unavailable"}, 503)
        if self._database.writes_fail:
            return JSONResponse({"status": "read-only"}, 503)
        return JSONResponse({"status": "ready"})

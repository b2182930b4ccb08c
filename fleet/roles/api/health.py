"""Liveness and readiness of the api."""

import asyncio

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import Unavailable

READY_SECONDS = 1.0
"""A probe's own limit is seldom longer."""


class Health:
    """`/healthz` and `/readyz`, for service managers and load balancers.

    Args:
        store: Redis, which must take writes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.router = APIRouter()
        self.router.get("/healthz")(self._alive)
        self.router.get("/readyz")(self._ready)

    async def _alive(self) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    async def _ready(self) -> JSONResponse:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._store.ping_writes()
        except (Unavailable, TimeoutError) as error:
            reason = str(error) or "Redis: no answer in time"
            return JSONResponse({"status": "unavailable", "reason": reason}, 503)
        return JSONResponse({"status": "ready"})

"""Control over real HTTP, on a port of its own, with tokens of two tenants."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from sqlalchemy import insert

from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.redis.client.store import Store
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.schema import TENANT
from fleet.adapters.sql.token_rows import TokenRows
from fleet.core.agent_settings import AgentModels
from fleet.core.permissions import SCOPES
from fleet.ground.settings import load
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.control.access import digest_of_token
from fleet.roles.control.accounts import passwords
from fleet.roles.control.app import build_app, build_services
from fleet.roles.control.services import ControlServices
from fleet.roles.control.settings import ControlSettings
from tests.support.patience import CONTROL, lengthen

FULL, STRANGER = "flt_full", "flt_stranger"
"""Tokens with all scopes: of the site's tenant, and of another one."""
OTHER_TENANT = 2
_LONG_AGO = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class ControlStage:
    """A running control."""

    app: FastAPI
    services: ControlServices
    client: httpx2.AsyncClient
    folder: Path

    @property
    def database(self) -> Database:
        return self.services.database

    async def add_token(self, token: str, *scopes: str, tenant: int = 1) -> str:
        """Add a token with these scopes."""
        await TokenRows(self.database).add(tenant, token, digest_of_token(token), scopes, _LONG_AGO)
        return token

    async def ask(self, verb: str, token: str | None = FULL, **more: Any) -> httpx2.Response:
        """Send a request, such as `GET /v1/me`, with a token or none."""
        method, _, path = verb.partition(" ")
        headers = {**more.pop("headers", {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        return await self.client.request(method, path, headers=headers, **more)


@asynccontextmanager
async def empty_control(
    database: Database, store: Store, folder: Path, models: AgentModels | None = None, **settings: Any
) -> AsyncIterator[ControlStage]:
    """Run control beside the block, with no token."""
    loaded = slice_of(load(data_dir=folder, **settings), ControlSettings)
    with pytest.MonkeyPatch.context() as patch:
        # A hash shall take an attacker long, but not hundreds of tests.
        patch.setattr(passwords, "PASSES", 1)
        patch.setattr(passwords, "MEMORY_KIB", 64)
        services = build_services(loaded, database, store, b"cursors of tests", models)
    app = build_app(services)
    server = HttpServer(app, "127.0.0.1", 0)
    with pytest.MonkeyPatch.context() as patch:
        lengthen(patch, CONTROL)
        async with (
            running("control", server.run),
            httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False, timeout=240) as client,
        ):
            yield ControlStage(app, services, client, folder)


@asynccontextmanager
async def control_stage(
    database: Database, store: Store, folder: Path, models: AgentModels | None = None, **settings: Any
) -> AsyncIterator[ControlStage]:
    """Run control beside the block, with tokens of two tenants."""
    async with empty_control(database, store, folder, models, **settings) as stage:
        async with database.writing() as connection:
            other = {"id": OTHER_TENANT, "slug": "other", "name": "Other", "created": 0}
            await connection.execute(insert(TENANT).values(other))
        await stage.add_token(FULL, *SCOPES)
        await stage.add_token(STRANGER, *SCOPES, tenant=OTHER_TENANT)
        yield stage

"""Control as a role of a `RoleSite`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from fleet.adapters.files.operator_tokens import OperatorTokens
from fleet.core.permissions import SCOPES
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts
from tests.support.role_site import RoleSite
from tests.support.until import until


@asynccontextmanager
async def control_api(
    site: RoleSite, folder: Path, seconds: float, **settings: str
) -> AsyncIterator[httpx2.AsyncClient]:
    """Run control; give a client of its API that may do everything."""
    tokens, port = folder / "tokens", free_port()
    token = OperatorTokens(tokens).add("test", frozenset(SCOPES))
    own = {"FLEET_CONTROL_HOST": LOOPBACK, "FLEET_CONTROL_PORT": str(port), "FLEET_DATA_DIR": str(folder)}
    site.start("control", FLEET_OPERATOR_TOKENS_FILE=str(tokens), **own, **settings)
    await asyncio.to_thread(until, lambda: accepts(port), seconds)
    headers, url = {"Authorization": f"Bearer {token}"}, f"http://{LOOPBACK}:{port}/v1/"
    async with httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=240) as client:
        yield client

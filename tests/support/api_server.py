"""The api over real HTTP, on a port of its own, with what a booting device sends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.redis.client.store import Store
from fleet.ground.settings import load
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.api.app import build_app
from fleet.roles.api.settings import ApiSettings
from fleet.run.vision import load_vision
from fleet.wire.identity import CredentialKeys

MAC = "aa:bb:cc:dd:ee:ff"
CLIENT = "7b8f1c44-0000-4000-8000-000000000001"
BODY = b'{"application":{"version":"2.4.2"},"board":{"type":"wifi","name":"board"},"language":"zh-CN"}'


def headers(**changed: str) -> dict[str, str]:
    """Return a device's headers; `Device_Id="…"` changes one."""
    sent = {"Device-Id": MAC, "Client-Id": CLIENT, "User-Agent": "board/2.4.2", "Activation-Version": "1"}
    return sent | {name.replace("_", "-"): value for name, value in changed.items()}


@asynccontextmanager
async def api_client(store: Store, keys: CredentialKeys, **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Run an api with these settings beside the block."""
    loaded = load(**settings)
    vision = load_vision(loaded)
    server = HttpServer(build_app(slice_of(loaded, ApiSettings), keys, store, vision), "127.0.0.1", 0)
    async with (
        running("api", server.run),
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False, timeout=240) as client,
    ):
        yield client
    if vision is not None:
        await vision.aclose()

"""An api under attack: over real HTTP, with what it counts, and raw connections to it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from fleet.adapters.net.http.connection import Bounds
from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.redis.client.store import Store
from fleet.ground.settings import load
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.api.app import Api, build_app
from fleet.roles.api.settings import ApiSettings
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import BODY, headers
from tests.support.descriptors import Descriptors
from tests.support.patience import API_STORE, lengthen

OTA, ACTIVATE = "/xiaozhi/ota/", "/xiaozhi/ota/activate"
LIMIT = 240
_POOL = 128
"""Connections to Redis that the store may keep."""
NORMAL = "0a:00:00:00:00:01"
"""A device that nobody attacks, and that must be served whatever happens to others."""


@dataclass
class AttackedApi:
    client: httpx2.AsyncClient
    neighbour: httpx2.AsyncClient
    """Asks from another address."""
    counts: Counter[str]
    """Refused requests."""
    server: HttpServer

    @property
    def ended(self) -> Counter[str]:
        """Connections that were ended, by reason."""
        return self.server.bounds.counts

    def visitor(self, address: str) -> httpx2.AsyncClient:
        """Return a client that asks from an address of the loopback network."""
        return _client(f"http://127.0.0.1:{self.server.port}", address)

    async def boot(self, mac: str, **changed: str) -> httpx2.Response:
        return await self.client.post(OTA, headers=headers(Device_Id=mac, **changed), content=BODY)

    async def serves(self) -> None:
        """Fail unless a normal device at another address is served."""
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    answer = await self.neighbour.post(OTA, headers=headers(Device_Id=NORMAL), content=BODY)
                    break
                except httpx2.TransportError:
                    pass  # Where limits are short, a busy machine may pass them; devices try again, too.
        assert answer.status_code == 200, answer.text
        assert "mqtt" in answer.json() or "activation" in answer.json()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(LIMIT):
            return await asyncio.open_connection("127.0.0.1", self.server.port)


@asynccontextmanager
async def attacked_api(
    store: Store,
    keys: CredentialKeys,
    bounds: Bounds | None = None,
    **settings: Any,
) -> AsyncIterator[AttackedApi]:
    """Run an api; after the block it must still serve, and hold no more descriptors than before."""
    loaded = load(**settings)
    app = build_app(slice_of(loaded, ApiSettings), keys, store)
    bounds = bounds or Bounds(head=LIMIT, unread=LIMIT)
    server = HttpServer(app, "127.0.0.1", 0, bounds=bounds, proxies=loaded.trusted_proxies)
    url = f"http://127.0.0.1:{server.port}"
    with pytest.MonkeyPatch.context() as patch:
        # That it answers counts here, not how soon Redis does.
        lengthen(patch, API_STORE)
        async with _attacked(app, server, url) as site:
            yield site


@asynccontextmanager
async def _attacked(app: Api, server: HttpServer, url: str) -> AsyncIterator[AttackedApi]:
    async with running("api", server.run), _client(url, None) as client, _client(url, "127.0.0.2") as neighbour:
        site = AttackedApi(client, neighbour, app.counts, server)
        await site.serves()
        here = Descriptors()
        yield site
        await site.serves()
        await here.no_more(spare=_POOL)


def _client(url: str, address: str | None) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport(local_address=address, limits=httpx2.Limits(max_keepalive_connections=0))
    return httpx2.AsyncClient(base_url=url, transport=transport, trust_env=False, timeout=240)


async def closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Wait until the server closes; return what it said."""
    said = b""
    async with asyncio.timeout(LIMIT):
        with contextlib.suppress(ConnectionError):
            said = await reader.read()
    writer.close()
    return said

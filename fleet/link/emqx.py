"""Closing connections of an EMQX broker through its REST API."""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx2
from pydantic import SecretStr

from fleet.errors import ConfigError, Unavailable
from fleet.http_bounds import LARGEST_ERROR, bounded_client
from fleet.tasks import Backoff, keep_running, running

log = logging.getLogger(__name__)

KICKOUT = "/api/v5/clients/kickout/bulk"
AGAIN_SECONDS = 4.0
"""More than EMQX waits for the answer to a login (`request_timeout` of its configuration): a device that was let in
just before it was revoked may be connected only after the first request."""

_AT_ONCE = 500
_REQUEST_SECONDS = 5.0
_LONGEST_PAUSE = 2.0
"""Seconds between attempts; a revocation is to count within five."""


class Emqx:
    """Tells EMQX to close the connections of devices, each twice, until EMQX has done so.

    What waits is bounded by the list of revoked devices: each of them waits once.

    Args:
        url: Of the REST API, up to and without `/api/v5`.
        key: An API key of EMQX with its secret, `key:secret`.

    Raises:
        ConfigError: One of them is none.
    """

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ConfigError("FLEET_EMQX_API_URL must be http(s)://host:port")
        if not all(key.partition(":")):
            raise ConfigError("FLEET_EMQX_API_KEY must be an EMQX API key with its secret, key:secret")
        self._url = url.rstrip("/") + KICKOUT
        self._login = {"Authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}
        self._due: dict[str, float] = {}
        self._once: set[str] = set()
        self._news = asyncio.Event()
        self._backoff = Backoff(limit=_LONGEST_PAUSE)

    @property
    def waiting(self) -> int:
        """Devices that EMQX is still to be told about."""
        return len(self._due)

    def expel(self, macs: Iterable[str]) -> None:
        """Close the connections of these devices soon; the api's keys must refuse them already."""
        now = asyncio.get_running_loop().time()
        for mac in macs:
            self._due[mac] = now
            self._once.discard(mac)
        self._news.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with bounded_client(LARGEST_ERROR, trust_env=False, timeout=_REQUEST_SECONDS) as client:
            await keep_running("EMQX: closing connections", lambda: self._work(client), self._backoff)

    async def _work(self, client: httpx2.AsyncClient) -> None:
        while True:
            await self._wait()
            now = asyncio.get_running_loop().time()
            batch = {mac: at for mac, at in self._due.items() if at <= now}
            batch = dict(list(batch.items())[:_AT_ONCE])
            if batch:
                await self._kick(client, list(batch))
                self._settle(batch)
                self._backoff.reset()

    async def _wait(self) -> None:
        """Return when something is due, or there is news."""
        self._news.clear()
        first = min(self._due.values(), default=None)
        try:
            async with asyncio.timeout_at(first):
                await self._news.wait()
        except TimeoutError:
            return

    async def _kick(self, client: httpx2.AsyncClient, macs: list[str]) -> None:
        try:
            answer = await client.post(self._url, json=macs, headers=self._login)
        except httpx2.HTTPError as error:
            raise Unavailable(f"EMQX's API: {str(error) or type(error).__name__}") from error
        if not answer.is_success:
            raise Unavailable(f"EMQX's API answered {answer.status_code}")
        log.info("revoked devices closed", extra={"devices": len(macs)})

    def _settle(self, batch: dict[str, float]) -> None:
        again = asyncio.get_running_loop().time() + AGAIN_SECONDS
        for mac, at in batch.items():
            if self._due.get(mac) != at:  # revoked anew meanwhile
                continue
            if mac in self._once:
                self._once.discard(mac)
                del self._due[mac]
            else:
                self._once.add(mac)
                self._due[mac] = again


@asynccontextmanager
async def expelling(url: str | None, key: SecretStr | None) -> AsyncIterator[Callable[[frozenset[str]], None]]:
    """Close connections at EMQX beside the block; without a URL nothing is closed.

    Raises:
        ConfigError: The URL or the key cannot be used.
    """
    if url is None:
        yield lambda _: None
        return
    emqx = Emqx(url, key.get_secret_value() if key else "")
    async with running("EMQX", emqx.run):
        yield emqx.expel

"""Closing connections of an EMQX broker through its REST API."""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from urllib.parse import quote, urlsplit

import httpx2
from pydantic import BaseModel, SecretStr, ValidationError

from fleet.adapters.http_client import LARGEST_ERROR, BoundedClient
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.tasks import Backoff, keep_running, running
from fleet.wire.identity import CredentialKeys, parse_username
from fleet.wire.topics import canonical_mac

log = logging.getLogger(__name__)

CLIENTS = "/api/v5/clients"
KICKOUT = f"{CLIENTS}/kickout/bulk"
AGAIN_SECONDS = 4.0
"""Longer than EMQX waits for the answer to a login (`request_timeout` of its configuration): a device whose login was
accepted just before its revocation may appear only after the first request."""

_AT_ONCE = 500
_REQUEST_SECONDS = 5.0
_LONGEST_PAUSE = 2.0
"""Seconds between attempts; a revocation must take effect within five."""
_PAGE = 500
_FEW = 50
"""Devices that are looked up one by one; for more, all clients are listed."""


class _Client(BaseModel):
    """A client that EMQX lists."""

    clientid: str
    username: str | None = None


class _Page(BaseModel):
    data: list[_Client]


class Emqx:
    """Requests EMQX to close connections of devices, twice for each, and retries until EMQX has accepted.

    A revoked device is closed with any credentials. If only a generation became invalid, EMQX is asked for the user
    name of the device's connection: a connection with a newer password stays.

    The queue is bounded by the list of refused credentials: each device is in it once.

    Args:
        url: Of the REST API, without `/api/v5`.
        key: An API key of EMQX with its secret, `key:secret`.
        keys: Decide which credentials are valid.

    Raises:
        ConfigError: The URL or the key is invalid.
    """

    def __init__(self, url: str, key: str, keys: CredentialKeys) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ConfigError("FLEET_EMQX_API_URL must be http(s)://host:port")
        if not all(key.partition(":")):
            raise ConfigError("FLEET_EMQX_API_KEY must be an EMQX API key with its secret, key:secret")
        self._url = url.rstrip("/")
        self._keys = keys
        self._login = {"Authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}
        self._due: dict[str, float] = {}
        self._once: set[str] = set()
        self._sweeps: list[float] = []
        """Times at which all clients have to be checked."""
        self._changed = asyncio.Event()
        self._backoff = Backoff(limit=_LONGEST_PAUSE)

    @property
    def waiting(self) -> int:
        """Devices whose connections are still to be closed."""
        return len(self._due)

    def expel(self, macs: Iterable[str] | None) -> None:
        """Close soon those connections of these devices (None: of all devices) whose credentials `keys` refuses now."""
        now = asyncio.get_running_loop().time()
        if macs is None:
            self._sweeps = [now, now + AGAIN_SECONDS]
        for mac in macs or ():
            self._due[mac] = now
            self._once.discard(mac)
        self._changed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with BoundedClient(LARGEST_ERROR, _REQUEST_SECONDS, trust_env=False) as client:
            await keep_running("EMQX: closing connections", lambda: self._work(client), self._backoff)

    async def _work(self, client: BoundedClient) -> None:
        while True:
            await self._wait()
            now = asyncio.get_running_loop().time()
            if self._sweeps and self._sweeps[0] <= now:
                sweeps = self._sweeps
                await self._kick(client, await self._outdated(client))
                # `expel` may have set new times meanwhile.
                self._sweeps = sweeps[1:] if self._sweeps is sweeps else self._sweeps
            batch = {mac: at for mac, at in self._due.items() if at <= now}
            batch = dict(list(batch.items())[:_AT_ONCE])
            if batch:
                await self._kick(client, await self._refused(client, list(batch)))
                self._settle(batch)
            self._backoff.reset()

    async def _wait(self) -> None:
        """Return when a request is due, or `expel` was called."""
        self._changed.clear()
        first = min((*self._due.values(), *self._sweeps), default=None)
        try:
            async with asyncio.timeout_at(first):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _refused(self, client: BoundedClient, macs: list[str]) -> list[str]:
        """Return the devices that are revoked, and those connected with invalid credentials."""
        unsure = [mac for mac in macs if mac not in self._keys.revoked]
        if len(unsure) > _FEW:
            outdated = frozenset(unsure).intersection(await self._outdated(client))
        else:
            outdated = frozenset([mac for mac in unsure if await self._is_outdated(client, mac)])
        return [mac for mac in macs if mac in self._keys.revoked or mac in outdated]

    async def _is_outdated(self, client: BoundedClient, mac: str) -> bool:
        answer = await self._ask(client, "GET", f"{CLIENTS}/{quote(mac, safe='')}")
        try:
            return answer is not None and self._refuses(_Client.model_validate_json(answer.content))
        except ValidationError as error:
            raise Unavailable("EMQX's API does not say who is connected") from error

    async def _outdated(self, client: BoundedClient) -> list[str]:
        """Return all devices that are connected with invalid credentials."""
        found, number = list[str](), 1
        while True:
            answer = await self._ask(client, "GET", f"{CLIENTS}?page={number}&limit={_PAGE}")
            try:
                page = _Page.model_validate_json(answer.content if answer else b'{"data":[]}').data
            except ValidationError as error:
                raise Unavailable("EMQX's API does not say who is connected") from error
            found += [one.clientid for one in page if self._refuses(one)]
            number += 1
            if len(page) < _PAGE:
                return found

    def _refuses(self, one: _Client) -> bool:
        is_device = canonical_mac(one.clientid) == one.clientid
        return is_device and not self._keys.admit(one.clientid, parse_username(one.username or ""))

    async def _kick(self, client: BoundedClient, macs: list[str]) -> None:
        for at in range(0, len(macs), _AT_ONCE):
            few = macs[at : at + _AT_ONCE]
            await self._ask(client, "POST", KICKOUT, few)
            log.info("closed connections with credentials that are no longer valid", extra={"devices": len(few)})

    async def _ask(
        self, client: BoundedClient, method: str, path: str, body: list[str] | None = None
    ) -> httpx2.Response | None:
        """Return EMQX's answer; None if it does not know the client."""
        try:
            answer = await client.request(method, self._url + path, json=body, headers=self._login)
        except httpx2.HTTPError as error:
            raise Unavailable(f"EMQX's API: {str(error) or type(error).__name__}") from error
        if answer.status_code == httpx2.codes.NOT_FOUND and method == "GET":
            return None
        if not answer.is_success:
            raise Unavailable(f"EMQX's API answered {answer.status_code}")
        return answer

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
async def expelling(
    url: str | None, key: SecretStr | None, keys: CredentialKeys
) -> AsyncIterator[Callable[[frozenset[str] | None], None]]:
    """Close connections at EMQX during the block; without a URL do nothing.

    Raises:
        ConfigError: The URL or the key cannot be used.
    """
    if url is None:
        yield lambda _: None
        return
    emqx = Emqx(url, key.get_secret_value() if key else "", keys)
    async with running("EMQX", emqx.run):
        yield emqx.expel

"""Who asks for a MAC that is another's, until an operator says whose it is.

The claims of a MAC lie with the MAC, and are written by the function that decides (`fleet_boot`). Which MACs are
claimed is one list with a bound over all devices.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from fleet.store.admissions import REFUSED_SECONDS
from fleet.store.connect import Store

MOST_CLAIMED = 1_000
"""MACs; of more the claims that were made last stay."""

_CLAIMED = "{claims}:macs"
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Claim:
    """A Client-Id that asks with a MAC which is another's; times in seconds since 1970."""

    mac: str
    client: str
    first: int
    last: int
    count: int
    address: str

    @property
    def shown(self) -> str:
        """As much of the Client-Id as tells it from others; all of it is what a device proves itself with."""
        return self.client[:_SHOWN]


class Claims:
    """Reads and settles claims. All methods raise Unavailable while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, mac: str) -> int:
        """Put a MAC that was claimed just now on the list; return how many of the oldest gave way."""
        pipe = self._store.client.pipeline(transaction=False)
        pipe.zadd(_CLAIMED, {mac: datetime.now(UTC).timestamp()})
        pipe.zcard(_CLAIMED)
        _, count = await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))
        if count <= MOST_CLAIMED:
            return 0
        popped = self._store.client.zpopmin(_CLAIMED, count - MOST_CLAIMED)
        gone = [name for name, _ in await self._store.ask(cast("Awaitable[list[tuple[str, float]]]", popped))]
        for name in gone:
            await self._store.ask(self._store.client.delete(self._store.keys.claims(name)))
        return len(gone)

    async def of(self, mac: str) -> list[Claim]:
        """Return the claims of a MAC, the newest first."""
        found = self._store.client.hgetall(self._store.keys.claims(mac))
        record = await self._store.ask(cast("Awaitable[dict[str, str]]", found))
        claims = [_claim(mac, client, text) for client, text in record.items()]
        return sorted(claims, key=lambda claim: claim.last, reverse=True)

    async def all(self) -> list[Claim]:
        """Return all claims, those of the MAC that was claimed last first; MACs without any leave the list."""
        found = self._store.client.zrevrange(_CLAIMED, 0, -1)
        macs = await self._store.ask(cast("Awaitable[list[str]]", found))
        claims: list[Claim] = []
        for mac in macs:
            of = await self.of(mac)
            if not of:
                await self._leave(mac)
            claims += of
            await asyncio.sleep(0)
        return claims

    async def refuse(self, claim: Claim) -> None:
        """Forget a claim, and let bootstrap refuse who made it for 30 days."""
        mark = self._store.keys.refused(claim.mac, claim.client)
        marked = self._store.client.set(mark, "1", ex=REFUSED_SECONDS)
        await self._store.ask(cast("Awaitable[Any]", marked))
        await self.settle(claim.mac, claim.client)

    async def settle(self, mac: str, client: str) -> None:
        """Forget a claim that was decided."""
        key = self._store.keys.claims(mac)
        await self._store.ask(self._store.client.hdel(key, client))
        if not await self.of(mac):
            await self._leave(mac)

    async def welcome(self, mac: str, client: str) -> None:
        """Take back that a Client-Id was refused."""
        mark = self._store.keys.refused(mac, client)
        await self._store.ask(self._store.client.delete(mark))

    async def _leave(self, mac: str) -> None:
        await self._store.ask(self._store.client.zrem(_CLAIMED, mac))


def _claim(mac: str, client: str, text: str) -> Claim:
    first, last, count, address = (*text.split(" ", 3), "", "", "", "")[:4]
    return Claim(mac, client, int(first), int(last), int(count), address)


def by_client(claims: list[Claim]) -> Mapping[str, Claim]:
    """Return claims by the part of the Client-Id that is shown."""
    return {claim.shown: claim for claim in claims}

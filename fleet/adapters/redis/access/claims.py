"""Claims: requests for a MAC that has another owner, until an operator decides.

The claims of a MAC are stored with the MAC, by the function that decides (`fleet_boot`). The claimed MACs are one
bounded list over all devices. In both, new claims from an address replace older ones of the same address first, so that
an attacker cannot displace the claim of a device whose memory was erased.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from fleet.adapters.redis.access.admissions import REFUSED_SECONDS
from fleet.adapters.redis.client.store import Store

MOST_CLAIMED = 1_000
"""Pairs of MAC and claiming address; beyond that the address with the most claims loses its oldest one."""
SHARE = 10
"""One address (IPv6: its /64) has at most this part of them."""

_PAIRS, _SOURCES = "{claims}:pairs", "{claims}:sources"


@dataclass(frozen=True, slots=True)
class Claim:
    """A Client-Id that asks with a MAC of another owner; times in seconds since 1970."""

    mac: str
    client: str
    first: int
    last: int
    count: int
    address: str


class Claims:
    """Reads and settles claims. All methods raise Unavailable while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, mac: str, address: str) -> int:
        """Add a MAC that was just claimed to the list; return how many claims were dropped for it."""
        limits = [MOST_CLAIMED, max(1, MOST_CLAIMED // SHARE)]
        gone = await self._store.call("fleet_claimed", [_PAIRS, _SOURCES], [mac, address, *limits])
        if not gone:
            return 0
        [dropped] = await self._store.call("fleet_forget_claims", [self._store.keys.claims(gone[0])], [gone[1]])
        return int(dropped)

    async def of(self, mac: str) -> list[Claim]:
        """Return the claims of a MAC, the newest first."""
        found = self._store.client.hgetall(self._store.keys.claims(mac))
        record = await self._store.ask(cast("Awaitable[dict[str, str]]", found))
        claims = [_claim(mac, client, text) for client, text in record.items()]
        return sorted(claims, key=lambda claim: claim.last, reverse=True)

    async def all(self) -> list[Claim]:
        """Return all claims, the most recently claimed MAC first; remove MACs without claims from the list."""
        claims: list[Claim] = []
        for mac, sources in (await self._listed()).items():
            of = await self.of(mac)
            await self._leave(mac, sources, of)
            claims += of
            await asyncio.sleep(0)
        return claims

    async def refuse(self, claim: Claim) -> None:
        """Delete a claim; bootstrap then refuses its Client-Id for 30 days."""
        mark = self._store.keys.refused(claim.mac, claim.client)
        marked = self._store.client.set(mark, "1", ex=REFUSED_SECONDS)
        await self._store.ask(cast("Awaitable[Any]", marked))
        await self.settle(claim.mac, claim.client)

    async def settle(self, mac: str, client: str) -> None:
        """Delete a claim that was decided."""
        key = self._store.keys.claims(mac)
        await self._store.ask(self._store.client.hdel(key, client))
        await self._leave(mac, (await self._listed()).get(mac, []), await self.of(mac))

    async def drop(self, mac: str) -> None:
        """Delete all claims of a MAC."""
        await self._store.ask(self._store.client.delete(self._store.keys.claims(mac)))
        await self._leave(mac, (await self._listed()).get(mac, []), [])

    async def lift_refusal(self, mac: str, client: str) -> None:
        """Serve a refused Client-Id again."""
        mark = self._store.keys.refused(mac, client)
        await self._store.ask(self._store.client.delete(mark))

    async def _listed(self) -> dict[str, list[str]]:
        """Return the MACs that are on the list with the addresses that claim them, the newest first."""
        found = self._store.client.zrevrange(_PAIRS, 0, -1)
        listed: dict[str, list[str]] = {}
        for pair in await self._store.ask(cast("Awaitable[list[str]]", found)):
            mac, _, source = pair.partition(" ")
            listed.setdefault(mac, []).append(source)
        return listed

    async def _leave(self, mac: str, sources: Sequence[str], left: Sequence[Claim]) -> None:
        """Remove the addresses without a remaining claim from the list."""
        for source in set(sources) - {claim.address for claim in left}:
            await self._store.call("fleet_unclaimed", [_PAIRS, _SOURCES], [mac, source])


def _claim(mac: str, client: str, text: str) -> Claim:
    first, last, count, address = (*text.split(" ", 3), "", "", "", "")[:4]
    return Claim(mac, client, int(first), int(last), int(count), address)

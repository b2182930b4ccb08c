"""The devices of a shard that have an old password, and the generations that are to be required."""

from collections.abc import Awaitable
from typing import cast

from fleet.store.connect import Store
from fleet.store.keys import prefix
from fleet.store.owner import Owner

_PAGE = 200
_SOURCES = ("online", "seen")
"""Where devices are looked for: those that are connected, whenever they started, and those that started lately."""


class Renewals:
    """Reads and writes them as the owner of a shard.

    All methods raise Unavailable while Redis does not answer, those with an owner Fenced when the shard is another's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def due(self, owner: Owner, shard: int, most: int) -> list[tuple[str, int]]:
        """Return some devices, and the generation below which their passwords are to be refused now."""
        names = self._store.keys
        found = await self._store.call(
            "fleet_renewal_due", [names.own(shard), names.due(shard)], [*_lease(owner), prefix(shard), most]
        )
        return [(mac, int(generation)) for mac, generation in zip(found[::2], found[1::2], strict=True)]

    async def settle(self, owner: Owner, shard: int, mac: str, generation: int) -> None:
        """Write down that a generation is required."""
        names = self._store.keys
        keys = [names.own(shard), names.due(shard), f"{prefix(shard)}o:{mac}"]
        await self._store.call("fleet_renewal_settled", keys, [*_lease(owner), mac, generation])

    async def scan(self, owner: Owner, shard: int, since: int) -> bool:
        """Sort some more of a shard's devices, once after a policy began at `since`; return whether all are."""
        mark = await self._mark(shard)
        known, source, cursor = mark if mark[0] == since else (since, 0, 0)
        if source == len(_SOURCES):
            return True
        names = self._store.keys
        devices = (names.online(shard), names.seen(shard))[source]
        keys = [names.own(shard), devices, names.old(shard), names.due(shard), self._mark_key(shard)]
        words: list[str | int] = [*_lease(owner), prefix(shard), cursor, _PAGE, f"{known} {source}"]
        [following] = await self._store.call("fleet_renewal_scan", keys, words)
        if following == "0":
            await self._write_mark(shard, f"{known} {source + 1} 0")
        return False

    async def ask(self, owner: Owner, shard: int, most: int, again: int, longest: int, busy: int) -> list[str]:
        """Return some idle devices with an old password that are to be asked to restart now.

        Args:
            owner: The shard's.
            shard: Whose devices.
            most: How many.
            again: Seconds until the same one is asked again; twice as long each time.
            longest: Seconds that this grows to.
            busy: Seconds until one that talks is looked at again.
        """
        names = self._store.keys
        keys = [names.own(shard), names.old(shard)]
        return await self._store.call(
            "fleet_renewal_ask", keys, [*_lease(owner), prefix(shard), most, again, longest, busy]
        )

    async def forget(self, shard: int) -> None:
        """Forget who has an old password: under an open policy all are as good."""
        await self._store.ask(self._store.client.delete(self._store.keys.old(shard)))

    async def left(self, since: int) -> int | None:
        """Return how many devices of all shards have an old password, None while not all of them are sorted."""
        total = 0
        for shard in range(self._store.keys.shards):
            known, source, _ = await self._mark(shard)
            if known != since or source < len(_SOURCES):
                return None
            counted = self._store.client.zcard(self._store.keys.old(shard))
            total += await self._store.ask(counted)
        return total

    async def hurry(self, macs: list[str]) -> None:
        """Let these be asked to restart at once, however often they were."""
        for mac in macs:
            names = self._store.keys
            pipe = self._store.client.pipeline(transaction=False)
            pipe.hdel(names.device(mac), "rn")
            pipe.zadd(names.old(names.shard(mac)), {mac: 0})
            await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def _mark(self, shard: int) -> tuple[int, int, int]:
        """Return for which policy a shard was sorted, in which source, and how far."""
        found = self._store.client.get(self._mark_key(shard))
        text = await self._store.ask(cast("Awaitable[str | None]", found))
        since, source, cursor = (text or "0 0 0").split()
        return int(since), int(source), int(cursor)

    async def _write_mark(self, shard: int, text: str) -> None:
        written = self._store.client.set(self._mark_key(shard), text)
        await self._store.ask(written)

    def _mark_key(self, shard: int) -> str:
        return f"{prefix(shard)}sorted"


def _lease(owner: Owner) -> tuple[str, str]:
    return owner.worker, owner.fence

"""The live edges."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import cast

from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import Store


@dataclass(frozen=True, slots=True)
class EdgeRecord:
    """An edge's announcement. An empty `host` means the host by which the device reached bootstrap.

    `voices` names its Chinese offline voices; none if another engine speaks, or if the edge is older than this field.
    """

    id: str
    host: str
    port: int
    load: int
    draining: bool = False
    voices: tuple[str, ...] = ()


class Edges:
    """Announces and lists edges."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def announce(self, edge: EdgeRecord) -> None:
        """Announce an edge; to be repeated at least every two seconds."""
        name = keys.edge(edge.id)
        fields: dict[str, object] = {"host": edge.host, "port": edge.port, "load": edge.load}
        # No name of a file has a slash.
        fields |= {"drain": int(edge.draining), "voices": "/".join(edge.voices)}
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hset(name, mapping={field: str(value) for field, value in fields.items()})
        pipe.expire(name, keys.EDGE_SECONDS)
        pipe.sadd(keys.EDGES, edge.id)
        pipe.expire(keys.edge_inbox(edge.id), keys.EDGE_INBOX_SECONDS)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def retire(self, edge_id: str) -> None:
        pipe = self._store.client.pipeline(transaction=False)
        pipe.delete(keys.edge(edge_id))
        pipe.srem(keys.EDGES, edge_id)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def live(self) -> list[EdgeRecord]:
        """Return the edges with a recent announcement, and remove the others."""
        ids = sorted(await self._store.ask(cast("Awaitable[set[str]]", self._store.client.smembers(keys.EDGES))))
        pipe = self._store.client.pipeline(transaction=False)
        for edge_id in ids:
            pipe.hgetall(keys.edge(edge_id))
        records = await self._store.ask(cast("Awaitable[list[dict[str, str]]]", pipe.execute())) if ids else []
        found = dict(zip(ids, records, strict=True))
        dead = [edge_id for edge_id, record in found.items() if not record]
        if dead:
            await self._store.ask(self._store.client.srem(keys.EDGES, *dead))
        return [_edge(edge_id, record) for edge_id, record in found.items() if record]


def _edge(edge_id: str, record: dict[str, str]) -> EdgeRecord:
    voices = tuple(filter(None, record.get("voices", "").split("/")))
    return EdgeRecord(edge_id, record["host"], int(record["port"]), int(record["load"]), record["drain"] == "1", voices)

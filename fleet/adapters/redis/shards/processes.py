"""The live processes of a site, as they announce themselves."""

from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from typing import cast

import msgspec

from fleet.adapters.redis import keys
from fleet.adapters.redis.client.store import Store

ANNOUNCE_SECONDS = 5.0
MOST = 2_000
"""Processes that are read."""


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process's announcement.

    `since` is when it began, in ms since 1970; `faults` says why it is not ready, empty if it is; `broker` is the
    address of its MQTT broker, empty without one, and `connected` whether it is connected to it.
    """

    id: str
    role: str
    version: str
    since: int
    faults: str = ""
    broker: str = ""
    connected: bool = False


_DECODER = msgspec.json.Decoder(ProcessRecord)


class Processes:
    """Announces and lists processes. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def announce(self, process: ProcessRecord) -> None:
        """Announce a process; to be repeated every `ANNOUNCE_SECONDS`."""
        pipe = self._store.client.pipeline(transaction=False)
        pipe.set(keys.process(process.id), msgspec.json.encode(asdict(process)), ex=keys.PROCESS_SECONDS)
        pipe.sadd(keys.PROCESSES, process.id)
        await self._store.ask(cast("Awaitable[list[object]]", pipe.execute()))

    async def retire(self, process: str) -> None:
        pipe = self._store.client.pipeline(transaction=False)
        pipe.delete(keys.process(process))
        pipe.srem(keys.PROCESSES, process)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def live(self) -> list[ProcessRecord]:
        """Return the processes with a recent announcement by role and age, and remove the others."""
        members = self._store.client.smembers(keys.PROCESSES)
        ids = sorted(await self._store.ask(cast("Awaitable[set[str]]", members)))[:MOST]
        pipe = self._store.client.pipeline(transaction=False)
        for name in ids:
            pipe.get(keys.process(name))
        texts = await self._store.ask(cast("Awaitable[list[str | None]]", pipe.execute())) if ids else []
        dead = [name for name, text in zip(ids, texts, strict=True) if text is None]
        if dead:
            await self._store.ask(self._store.client.srem(keys.PROCESSES, *dead))
        found = [_DECODER.decode(text) for text in texts if text is not None]
        return sorted(found, key=lambda one: (one.role, one.since, one.id))

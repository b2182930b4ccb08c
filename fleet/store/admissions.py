"""What an operator decided about each device; it is kept until the operator decides otherwise."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from fleet.store.connect import Store
from fleet.store.keys import prefix

_BINDING = ("bound", "client", "serial")


@dataclass(frozen=True, slots=True)
class Admission:
    """A device's standing. `client` is the Client-Id that it had when it was bound, empty until it shows one."""

    bound: bool = False
    client: str = ""
    serial: str = ""
    timezone: str = ""
    """An IANA name or minutes east of UTC; the server's own without it."""

    @classmethod
    def of(cls, record: Mapping[str, str]) -> "Admission":
        return cls(
            bound=bool(record.get("bound")),
            client=record.get("client", ""),
            serial=record.get("serial", ""),
            timezone=record.get("tz", ""),
        )


class Admissions:
    """Reads and writes standings."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, mac: str) -> Admission:
        record = self._store.client.hgetall(self._key(mac))
        return Admission.of(await self._store.ask(cast("Awaitable[dict[str, str]]", record)))

    async def read_many(self, macs: list[str]) -> list[Admission]:
        pipe = self._store.client.pipeline(transaction=False)
        for mac in macs:
            pipe.hgetall(self._key(mac))
        records = await self._store.ask(cast("Awaitable[list[dict[str, str]]]", pipe.execute())) if macs else []
        return [Admission.of(record) for record in records]

    async def bind(self, mac: str, client: str = "", serial: str = "") -> None:
        """Admit a device; without a client it is the first one that shows itself."""
        key, since = self._key(mac), datetime.now(UTC).isoformat(timespec="seconds")
        fields = {"bound": since, "client": client, "serial": serial}
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hdel(key, *_BINDING)
        pipe.hset(key, mapping=cast("Any", {name: text for name, text in fields.items() if text}))
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def unbind(self, mac: str) -> bool:
        """Take a device's admission away; return whether it had one."""
        removed = self._store.client.hdel(self._key(mac), *_BINDING)
        return await self._store.ask(removed) > 0

    async def pin(self, mac: str, client: str) -> bool:
        """Give a bound device without a client this one, unless another one came first; return whether it has it."""
        pipe = self._store.client.pipeline(transaction=False)
        pipe.hsetnx(self._key(mac), "client", client)
        pipe.hget(self._key(mac), "client")
        _, kept = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        return bool(kept == client)

    async def set_timezone(self, mac: str, timezone: str) -> None:
        """Set a device's time zone; an empty one is the server's."""
        key = self._key(mac)
        change = self._store.client.hset(key, "tz", timezone) if timezone else self._store.client.hdel(key, "tz")
        await self._store.ask(change)

    def _key(self, mac: str) -> str:
        return admission_key(self._store, mac)


def admission_key(store: Store, mac: str) -> str:
    return f"{prefix(store.keys.shard(mac))}o:{mac}"

"""What the server itself keeps of a device's settings: its time zone, and the language of its answers."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, cast

from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS


class OwnState:
    """Reads and writes these settings of many devices. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, macs: Sequence[str]) -> dict[str, Mapping[str, str]]:
        """Return `timezone` and `language` of each device, by MAC; empty where it is that of the site."""
        pipe = self._store.client.pipeline(transaction=False)
        for mac in macs:
            pipe.hget(admission_key(self._store, mac), "tz")
            pipe.hget(self._store.keys.persona(mac), "language")
        found = await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute())) if macs else []
        pairs = zip(macs, found[::2], found[1::2], strict=True)
        return {mac: {"timezone": zone or "", "language": language or ""} for mac, zone, language in pairs}

    async def write(self, values: Mapping[str, Mapping[str, str]]) -> None:
        """Write some of these settings, by MAC: a time zone counts from the next start, a language at once."""
        pipe = self._store.client.pipeline(transaction=False)
        for mac, settings in values.items():
            if "timezone" in settings:
                pipe.hset(admission_key(self._store, mac), "tz", settings["timezone"])
                pipe.persist(admission_key(self._store, mac))
            if "language" in settings:
                pipe.hset(self._store.keys.persona(mac), "language", settings["language"])
                pipe.expire(self._store.keys.persona(mac), DEVICE_SECONDS)
        if values:
            await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))
        for mac in (one for one, settings in values.items() if "timezone" in settings):
            await Reminders(self._store).look_again(mac)

"""The last events of a device, to find out why it is silent (`fleet doctor --device`).

The traces are fields of the device's record. The functions of presence, hello and goodbye write theirs
(`functions.lua`); edges write theirs once a second for all devices together. A trace is the time in seconds since 1970,
mostly with some words. Refused bootstraps are in one bounded list, because any client may ask with any MAC.
"""

from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, cast, get_args

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.core.admission import NoPlace

EdgeNote = Literal["audio", "end", "heard", "understood", "spoke", "sorry"]
"""Events from an edge: the first packets from an address; the end of a session, with its packets; speech was heard; it
was recognised; an answer was spoken; an apology was spoken."""

RefusalReason = Literal["revoked", "not on the list", "not bound", NoPlace]
"""Why bootstrap gave a device no credentials."""

FIELDS: Final[Mapping[str, str]] = {
    "presence": "tp",
    "hello": "th",
    "refused": "tr",
    "goodbye": "tb",
    "audio": "ta",
    "end": "te",
    "heard": "tu",
    "understood": "tv",
    "spoke": "ts",
    "sorry": "tx",
}
"""Fields of the device's record; short, for every device has them."""

MOST_REFUSED = 1_000
_REFUSED = "{refused}:bootstrap"
_REASONS: Final[tuple[RefusalReason, ...]] = get_args(RefusalReason)


class TraceStore:
    """Writes the traces that `functions.lua` does not write; `fleet.adapters.redis.devices.view` reads them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, notes: Mapping[str, Mapping[str, str]]) -> None:
        """Write the traces of several devices in one round trip; records that are new take a second one.

        Args:
            notes: For each device its events (keys of `FIELDS`): the time, and words after a blank.

        Raises:
            Unavailable: Redis did not answer.
        """
        pipe, names = self._store.client.pipeline(transaction=False), list(map(self._store.keys.device, notes))
        for name, happened in zip(names, notes.values(), strict=True):
            words = [word for what, text in happened.items() for word in (FIELDS[what], text)]
            pipe.execute_command("HSET", name, *words)
        added = await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))
        # Every hello renews the life of a record. One that was forgotten meanwhile is new, and so are its fields.
        renewal = self._store.client.pipeline(transaction=False)
        for name, fields in zip(names, added, strict=True):
            if fields:
                renewal.expire(name, DEVICE_SECONDS)
        await self._store.ask(cast("Awaitable[list[int]]", renewal.execute()))

    async def note(self, mac: str, what: str, words: str) -> None:
        """Write one trace, with the time.

        Raises:
            Unavailable: Redis did not answer.
        """
        await self.write({mac: {what: f"{_now()} {words}"}})

    async def record_refusal(self, mac: str, reason: RefusalReason) -> None:
        """Record that bootstrap refused a device; beyond the limit the oldest records are dropped.

        Raises:
            Unavailable: Redis did not answer.
        """
        pipe = self._store.client.pipeline(transaction=False)
        pipe.zadd(_REFUSED, {f"{mac} {reason}": _now()})
        pipe.zremrangebyrank(_REFUSED, 0, -MOST_REFUSED - 1)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def refusal(self, mac: str) -> tuple[int, str] | None:
        """Return when and why bootstrap last refused a device."""
        pipe = self._store.client.pipeline(transaction=False)
        for reason in _REASONS:
            pipe.zscore(_REFUSED, f"{mac} {reason}")
        scores = await self._store.ask(cast("Awaitable[list[float | None]]", pipe.execute()))
        found = [(int(score), reason) for score, reason in zip(scores, _REASONS, strict=True) if score is not None]
        return max(found, default=None)

    async def refusals(self) -> dict[str, tuple[int, str]]:
        """Return when and why bootstrap last refused each device of the bounded list."""
        found = self._store.client.zrange(_REFUSED, 0, -1, withscores=True)
        latest: dict[str, tuple[int, str]] = {}
        for entry, at in await self._store.ask(cast("Awaitable[list[tuple[str, float]]]", found)):
            mac, _, reason = entry.partition(" ")
            latest[mac] = int(at), reason
        return latest

    async def drop_refusals(self, mac: str) -> None:
        """Remove a device from the list."""
        gone = self._store.client.zrem(_REFUSED, *(f"{mac} {reason}" for reason in _REASONS))
        await self._store.ask(gone)


def _now() -> int:
    return int(datetime.now(UTC).timestamp())

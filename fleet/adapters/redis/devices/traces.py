"""What happened to a device last, for whoever asks why it is silent (`fleet doctor --device`).

The traces lie in the device's own record and are written by what writes it anyway: presence, hello and goodbye by
their functions (`functions.lua`), the edges' notes once a second for all devices together. A trace is the time in
seconds since 1970, and mostly some words. Bootstraps that were refused are another matter: anybody may ask in the name
of any MAC, so those are kept in one list that has a bound.
"""

from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, cast, get_args

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.core.admission import NoPlace

EdgeNote = Literal["audio", "end", "heard", "understood", "spoke", "sorry"]
"""From an edge: first packets came from an address; a session ended, with its packets; somebody said something; it was
understood; an answer was spoken; an apology was."""

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
    """Writes traces that no function writes; reading them is `fleet.adapters.redis.devices.view`'s."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, notes: Mapping[str, Mapping[str, str]]) -> None:
        """Write what was noted of devices, in one round trip.

        Args:
            notes: For each device what happened (keys of `FIELDS`): the time, and words after a blank.

        Raises:
            Unavailable: Redis did not answer.
        """
        pipe = self._store.client.pipeline(transaction=False)
        for mac, happened in notes.items():
            key = self._store.keys.device(mac)
            pipe.hset(key, mapping=cast("Any", {FIELDS[what]: text for what, text in happened.items()}))
            pipe.expire(key, DEVICE_SECONDS)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def note(self, mac: str, what: str, words: str) -> None:
        """Write one trace, with the time.

        Raises:
            Unavailable: Redis did not answer.
        """
        await self.write({mac: {what: f"{_now()} {words}"}})

    async def record_refusal(self, mac: str, reason: RefusalReason) -> None:
        """Remember that bootstrap gave a device nothing; of too many the oldest are forgotten.

        Raises:
            Unavailable: Redis did not answer.
        """
        pipe = self._store.client.pipeline(transaction=False)
        pipe.zadd(_REFUSED, {f"{mac} {reason}": _now()})
        pipe.zremrangebyrank(_REFUSED, 0, -MOST_REFUSED - 1)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def refusal(self, mac: str) -> tuple[int, str] | None:
        """Return when and why bootstrap gave a device nothing, the last time."""
        pipe = self._store.client.pipeline(transaction=False)
        for reason in _REASONS:
            pipe.zscore(_REFUSED, f"{mac} {reason}")
        scores = await self._store.ask(cast("Awaitable[list[float | None]]", pipe.execute()))
        found = [(int(score), reason) for score, reason in zip(scores, _REASONS, strict=True) if score is not None]
        return max(found, default=None)


def _now() -> int:
    return int(datetime.now(UTC).timestamp())

"""Counts many devices by what decides how they can be reached now, so that their number costs little to read."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.json import Decoder

from fleet.adapters.redis import keys as names
from fleet.adapters.redis.client.store import Store

AT_ONCE: Final = 500
"""Devices of one call: Redis does nothing else for about three milliseconds."""
_TOGETHER: Final = 8
"""Calls under way at a time."""


class DeviceKind(NamedTuple):
    """What devices have in common. Texts are empty where nothing is known."""

    online: bool
    dialect: str
    firmware: str
    unfetched: str
    """Clips that it should have fetched and did not, as `notify_faults.read_faults` reads them."""
    host: str
    """The host by which it reached bootstrap."""
    session: bool
    speaks: bool
    """Whether an edge has its session."""
    timezone: str
    """Its own; empty where it is that of the site, or where nobody asked."""


class DeviceTallies:
    """Counts; raises `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def count(self, macs: Sequence[str], *, timezones: bool = False) -> Counter[DeviceKind]:
        """Return how many devices there are of each kind.

        Args:
            macs: The devices.
            timezones: Whether to read their time zones.
        """
        keys = self._store.keys
        calls = [
            ([keys.operator_calls(shard)], [names.prefix(shard), int(timezones), *some[at : at + AT_ONCE]])
            for shard, some in names.by_shard(keys.shards, macs, str).items()
            for at in range(0, len(some), AT_ONCE)
        ]
        counts: Counter[DeviceKind] = Counter()
        for at in range(0, len(calls), _TOGETHER):
            for found in await self._store.call_each("fleet_devices_tally", calls[at : at + _TOGETHER]):
                for text, count in zip(found[::2], found[1::2], strict=True):
                    counts[_kind(text)] += int(count)
        return counts


_DECODER: Final = Decoder(tuple[str, str, str, str, str, str, str, str])


def _kind(text: str) -> DeviceKind:
    on, dialect, firmware, unfetched, host, session, speaks, timezone = _DECODER.decode(text)
    return DeviceKind(on == "1", dialect, firmware, unfetched, host, session == "1", speaks == "1", timezone)

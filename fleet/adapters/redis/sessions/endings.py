"""The end of a device's last session: when its goodbye was sent, and the apology that is still due."""

from dataclasses import dataclass

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.adapters.redis.shards.owner import Owner


@dataclass(frozen=True, slots=True)
class DueApology:
    """An apology to show on a device now.

    `name` is a key of `fleet.core.text.phrases`; `language` is the one that the device reported, or empty; `epoch` is
    the presence epoch of the device's connection, or empty (`Endings.mark_shown` takes it back).
    """

    name: str
    language: str
    epoch: str


class Endings:
    """Reads and writes the end of a device's last session; `Sessions.close` creates it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def goodbye_age(self, mac: str, session: str) -> float | None:
        """Return how many seconds ago this session's goodbye was sent; None if none was sent.

        Raises:
            Unavailable: Redis did not answer.
        """
        (age,) = await self._store.call("fleet_ended", [self._store.keys.device(mac)], [session])
        return None if int(age) < 0 else int(age) / 1000

    async def due(self, mac: str) -> DueApology | None:
        """Return the apology to show on a device now, if there is one.

        Raises:
            Unavailable: Redis did not answer.
        """
        found = await self._store.call("fleet_apology", [self._store.keys.device(mac)], [])
        return DueApology(*found) if found else None

    async def mark_shown(self, owner: Owner, mac: str, epoch: str) -> None:
        """Record that the apology was sent in the connection of this epoch; in a later connection it is due again.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis did not answer.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_set",
            [keys.own(keys.shard(mac)), keys.device(mac)],
            [owner.worker, owner.fence, DEVICE_SECONDS, "se", epoch],
        )

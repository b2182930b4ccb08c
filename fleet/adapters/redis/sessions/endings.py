"""How a device's last session ended: when it was sent a goodbye, and the apology that it is still to be shown."""

from dataclasses import dataclass

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.adapters.redis.shards.owner import Owner


@dataclass(frozen=True, slots=True)
class DueApology:
    """An apology that a device may be shown now.

    `name` is a key of `fleet.core.text.phrases`, `language` what the device reported of itself, `epoch` its connection.
    """

    name: str
    language: str
    epoch: str


class Endings:
    """Reads and writes the end of a device's last session; `Sessions.close` begins it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def farewell_age(self, mac: str, session: str) -> float | None:
        """Return how many seconds ago a device was sent a goodbye for this session; None if it was not.

        Raises:
            Unavailable: Redis did not answer.
        """
        (age,) = await self._store.call("fleet_ended", [self._store.keys.device(mac)], [session])
        return None if int(age) < 0 else int(age) / 1000

    async def due(self, mac: str) -> DueApology | None:
        """Return the apology that a device is to be shown now, if there is one.

        Raises:
            Unavailable: Redis did not answer.
        """
        found = await self._store.call("fleet_apology", [self._store.keys.device(mac)], [])
        return DueApology(*found) if found else None

    async def shown(self, owner: Owner, mac: str, epoch: str) -> None:
        """Remember that the apology was sent in this connection; a device that connects anew gets it again.

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

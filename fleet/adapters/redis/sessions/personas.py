"""The persona of each device: the language that was set, and the role that the model plays."""

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.server_tools import Persona


class Personas:
    """Writes personas; `Conversations.context` reads them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, owner: Owner, mac: str, persona: Persona) -> None:
        """Store a device's persona in place of the previous one.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis is away.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_set",
            [keys.own(keys.shard(mac)), keys.persona(mac)],
            [owner.worker, owner.fence, DEVICE_SECONDS, "language", persona.language, "character", persona.character],
        )

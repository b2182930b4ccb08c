"""The facts of one device during a turn, for the tools `remember` and `forget`."""

import logging

from fleet.adapters.redis.devices.memories import Memories
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.memory import MemoryChanges
from fleet.ground.errors import Fenced, Unavailable

log = logging.getLogger(__name__)


class DeviceMemory:
    """See `fleet.core.memory.Memory`.

    Args:
        memories: In Redis.
        owner: Of the device's shard.
        mac: The device.
        facts: As the turn found them.
    """

    def __init__(self, memories: Memories, owner: Owner, mac: str, facts: tuple[str, ...]) -> None:
        self.facts = facts
        self._memories = memories
        self._owner = owner
        self._mac = mac

    async def change(self, changes: MemoryChanges) -> bool:
        """Change the facts in Redis, and read them again; return False if that failed."""
        try:
            await self._memories.change(self._owner, self._mac, changes)
            self.facts = await self._memories.read(self._mac)
        except (Fenced, Unavailable) as error:
            # If this worker lost the shard, the turn ends at its next write.
            log.warning("memory not changed", extra={"reason": str(error)})
            return False
        return True

"""`/v1/devices/{mac}/memory`: what a device remembers of its users."""

from fastapi import Request

from fleet.adapters.redis.devices.memories import Memories
from fleet.core.permissions import MEMORY_READ, MEMORY_WRITE
from fleet.roles.control.access import Who
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.calls import FactChoice, FactList, Forgotten


class DeviceMemoryRoutes:
    """Shows and deletes facts. The audit log says how many, never which."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._memories = services, Memories(services.store)
        self._own = OwnDevices(services)
        routes.add("GET /devices/{mac}/memory", self.show, MEMORY_READ)
        routes.add("POST /devices/{mac}/memory:forget", self.forget, MEMORY_WRITE)
        routes.add("DELETE /devices/{mac}/memory", self.clear, MEMORY_WRITE)

    async def show(self, who: Who, mac: str) -> FactList:
        """Return the facts that a device remembers, the oldest first."""
        return FactList(items=list(await self._memories.read(await self._own.known(who, mac))))

    async def forget(self, request: Request, who: Who, mac: str, body: FactChoice) -> Forgotten:
        """Delete single facts; turns that begin from now on do not know them."""
        device = await self._own.known(who, mac)
        await self._audit(request, device, "memory.forget", len(body.facts))
        return Forgotten(count=await self._memories.forget(device, body.facts))

    async def clear(self, request: Request, who: Who, mac: str) -> Forgotten:
        """Delete all facts of a device; its last conversation is not remembered either."""
        device = await self._own.known(who, mac)
        await self._audit(request, device, "memory.clear", len(await self._memories.read(device)))
        return Forgotten(count=await self._memories.clear(device))

    async def _audit(self, request: Request, device: str, action: str, count: int) -> None:
        async with self._services.changes.begin(request) as change:
            await change.audit(action, f"device/{device}", before={"facts": count})

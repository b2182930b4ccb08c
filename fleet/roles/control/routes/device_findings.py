"""`/v1/devices/{mac}/findings`: why a device is silent."""

from dataclasses import asdict

from fleet.adapters.redis.access.policy import PolicyStore
from fleet.core.permissions import DEVICES_READ
from fleet.roles.control.access import Who
from fleet.roles.control.doctor.device import SiteTerms, examine_device
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.device_findings import DeviceFinding
from fleet.wire.control.shapes import ListPage


class DeviceFindingRoutes:
    """Examines devices as `fleet doctor --device` does."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._own = services, OwnDevices(services)
        self._policy = PolicyStore(services.store)
        routes.add("GET /devices/{mac}/findings", self.read, DEVICES_READ)

    async def read(self, who: Who, mac: str) -> ListPage[DeviceFinding]:
        """Return the doctor's findings about a device, from its first request to its last answer."""
        device, keys = await self._own.known(who, mac), self._services.keys
        # Before the first api there is no policy, nor any device.
        policy = (await self._policy.read()).policy or "open"
        terms = SiteTerms(policy, keys.ids if keys is not None else ())
        found = await examine_device(self._services.store, device, terms)
        return ListPage(items=[DeviceFinding(**asdict(one)) for one in found], next=None)

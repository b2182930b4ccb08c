"""`/v1/devices:waiting` and `:claims`: devices that wait for admission."""

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.claims import Claim, Claims
from fleet.core.permissions import DEVICES_READ
from fleet.roles.control.access import Who
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.devices import ClaimList, DeviceClaim, WaitingDevice, WaitingList
from fleet.wire.control.shapes import time_of


class ClaimRoutes:
    """Devices that show codes, and clients that ask for a MAC of another owner."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._store, self._own = services.store, OwnDevices(services)
        self._claims = Claims(services.store)
        routes.add("GET /devices:waiting", self.waiting, DEVICES_READ)
        routes.add("GET /devices:claims", self.claims, DEVICES_READ)
        routes.add("GET /devices/{mac}/claims", self.claims_of, DEVICES_READ)

    async def waiting(self, who: Who) -> WaitingList:
        """Return the devices that show a code now."""
        codes = await Activations(self._store).codes()
        await self._own.refresh(*(mac for mac, _ in codes))
        own = await self._own.among(who, [mac for mac, _ in codes])
        return WaitingList(items=[WaitingDevice(mac=mac, code=code) for mac, code in codes if mac in own])

    async def claims(self, who: Who) -> ClaimList:
        """Return the clients that ask for a MAC of another owner."""
        found = await self._claims.all()
        own = await self._own.among(who, [claim.mac for claim in found])
        return ClaimList(items=[_shape(claim) for claim in found if claim.mac in own])

    async def claims_of(self, who: Who, mac: str) -> ClaimList:
        """Return the clients that ask for the MAC of a device."""
        name = await self._own.known(who, mac)
        return ClaimList(items=[_shape(claim) for claim in await self._claims.of(name)])


def _shape(claim: Claim) -> DeviceClaim:
    return DeviceClaim.model_validate(
        {
            "mac": claim.mac,
            "client": claim.client,
            "address": claim.address,
            "count": claim.count,
            "first": time_of(claim.first * 1000),
            "last": time_of(claim.last * 1000),
        }
    )

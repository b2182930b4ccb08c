"""Which devices belong to the tenant of a request."""

from fleet.adapters.sql.device_rows import AT_ONCE, DeviceRows
from fleet.roles.control.access import Principal
from fleet.roles.control.device_queries import read_mac
from fleet.roles.control.leader.device_copies import DeviceCopies
from fleet.roles.control.problems import not_found
from fleet.roles.control.services import ControlServices


class OwnDevices:
    """Looks for devices of a tenant, also for those that came a moment ago."""

    def __init__(self, services: ControlServices) -> None:
        self._database = services.database
        self._copies = DeviceCopies(services.store, services.database)

    async def refresh(self, *macs: str) -> None:
        """Copy what Redis knows of some devices now."""
        await self._copies.refresh(macs)

    async def among(self, who: Principal, macs: list[str]) -> set[str]:
        """Return those of some MACs that are devices of the tenant."""
        rows, own = DeviceRows(self._database, who.tenant), set[str]()
        for at in range(0, len(macs), AT_ONCE):
            own |= await rows.present(macs[at : at + AT_ONCE])
        return own

    async def known(self, who: Principal, mac: str) -> str:
        """Return the canonical MAC of a device of the tenant.

        Raises:
            Problem: The tenant has no such device (404).
        """
        name = read_mac(mac)
        if not await self.among(who, [name]):
            await self.refresh(name)
            if not await self.among(who, [name]):
                raise not_found("device")
        return name

"""`/v1/devices/{mac}/reminders`: what users of a device want to be reminded of."""

from fastapi import Request, Response

from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.core.permissions import MEMORY_READ, MEMORY_WRITE
from fleet.core.reminders import time_of
from fleet.roles.control.access import Who
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.problems import not_found
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.reminders import ReminderList, ReminderState


class DeviceReminderRoutes:
    """Shows and cancels reminders. The audit log has their ids, never their texts."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._reminders = services, Reminders(services.store)
        self._own = OwnDevices(services)
        routes.add("GET /devices/{mac}/reminders", self.show, MEMORY_READ)
        routes.add("DELETE /devices/{mac}/reminders/{reminder}", self.cancel, MEMORY_WRITE, model=None, status=204)

    async def show(self, who: Who, mac: str) -> ReminderList:
        """Return the timers and reminders of a device, the next one first."""
        found = await self._reminders.read(await self._own.known(who, mac))
        items = [ReminderState(id=one.id, text=one.text, due=time_of(one), daily=one.clock or None) for one in found]
        return ReminderList(items=items)

    async def cancel(self, request: Request, who: Who, mac: str, reminder: str) -> Response:
        """Cancel a timer or reminder; one that is being told now is not stopped."""
        device = await self._own.known(who, mac)
        if not any(one.id == reminder for one in await self._reminders.read(device)):
            raise not_found("reminder")
        async with self._services.changes.begin(request) as change:
            await change.audit("reminder.cancel", f"device/{device}", before={"reminder": reminder})
            await self._reminders.cancel(device, [reminder])
            return change.answer(status=204)

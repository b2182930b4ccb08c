"""`/v1/devices/{mac}:forget` and `:move`: how a device leaves a tenant."""

import asyncio

from fastapi import Request, Response

from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.announcements.reminders import Reminders
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.forgetting import erase, has_events
from fleet.adapters.redis.devices.memories import Memories
from fleet.adapters.redis.devices.tenants import DeviceTenants
from fleet.adapters.redis.sessions.redaction import forget_history
from fleet.adapters.sql.audit_rows import AuditRows, Origin
from fleet.adapters.sql.conversation_rows import ConversationRows
from fleet.adapters.sql.device_moves import DeviceMoves
from fleet.adapters.sql.device_rows import DeviceRows, VersionConflict
from fleet.adapters.sql.token_rows import FIRST_TENANT
from fleet.core.permissions import DEVICES_WRITE
from fleet.roles.control.access import Principal, Who, milliseconds, source_of
from fleet.roles.control.device_queries import read_mac
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.request_ids import request_id
from fleet.roles.control.routing import VERSIONED, Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.versions import expected_version
from fleet.wire.control.devices import DecisionOutcome, TenantChoice

_COLLECTED_SECONDS, _STEP = 5.0, 0.1


class EndRoutes:
    """How a device leaves a tenant."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._store = services, services.store
        routes.add("POST /devices/{mac}:forget", self.forget, DEVICES_WRITE, notes=VERSIONED)
        routes.add("POST /devices/{mac}:move", self.move, DEVICES_WRITE, model=DecisionOutcome)

    async def forget(self, request: Request, who: Who, mac: str) -> DecisionOutcome:
        """Delete everything about a device: here, what it remembers, its history, its owner. Switch it off before.

        A device that comes back is a new one. Passwords that it was given earlier are valid again then.
        """
        name, version = read_mac(mac), expected_version(request)
        await _check_version(DeviceRows(self._services.database, who.tenant), name, version)
        if (await Devices(self._store).read(name)).online:
            raise Problem(409, "connected", "the device is connected: switch it off, or revoke it, and try again")
        if await Revocations(self._store).which([name]):
            raise Problem(409, "revoked", "whoever is forgotten may connect again: lift its revocation first")
        await self._until_collected(name)
        async with self._services.changes.begin(request) as change:
            await _check_version(DeviceRows(change.sql, who.tenant), name, version)
            await change.audit("device.forget", f"device/{name}")
            await change.pin()
        # Redis first: a kill in between leaves a row of a device that Redis does not know, and forgetting it once more
        # ends it. A device in Redis without a row would be copied as a new one of the first tenant.
        await erase(self._store, name)
        await ConversationRows(self._services.database, who.tenant).erase(name)
        await DeviceRows(self._services.database, who.tenant).forget(name)
        return DecisionOutcome(mac=name, changed=True)

    async def move(self, request: Request, who: Who, mac: str, body: TenantChoice) -> Response:
        """Give a device to another tenant, with its name, notes and tags. Only the site's tenant may do so.

        It leaves its groups and its agent, and loses its reminders, its facts, and its history for the model. Its
        conversations stay with the old tenant.
        """
        name, moves = read_mac(mac), DeviceMoves(self._services.database)
        if who.tenant != await moves.first_tenant():
            raise Problem(403, "site-only", "only tokens of the site's tenant move devices")
        source = await self._source(who, moves, body)
        target = await moves.tenant(body.tenant)
        if target is None:
            raise not_found("tenant")
        async with self._services.changes.begin(request) as change:
            if not await DeviceMoves(change.sql).move(name, source, target):
                raise not_found("device")
            before, after = {"tenant": source}, {"tenant": target}
            await change.audit("device.move", f"device/{name}", before=before, after=after)
            for tenant in sorted({source, target} - {who.tenant}):
                origin = Origin(tenant, who.actor, source_of(request), request_id(request))
                log = AuditRows(change.sql)
                await log.add(origin, milliseconds(), "device.move", f"device/{name}", before, after)
            if source != target:
                await Reminders(self._store).clear(name)
                await forget_history(self._store, name)
                await Memories(self._store).clear(name)
                await DeviceTenants(self._store).put({name: 0 if target == FIRST_TENANT else target})
            return change.answer(DecisionOutcome(mac=name, changed=source != target))

    async def _until_collected(self, mac: str) -> None:
        """Wait until no event of a device waits: collected later, it would be a trace of the forgotten device."""
        try:
            async with asyncio.timeout(_COLLECTED_SECONDS):
                while await has_events(self._store, mac):  # noqa: ASYNC110 - another process collects them
                    await asyncio.sleep(_STEP)
        except TimeoutError:
            raise Problem(409, "events-wait", "events of the device wait to be collected: try again soon") from None

    async def _source(self, who: Principal, moves: DeviceMoves, body: TenantChoice) -> int:
        if body.source is None:
            return who.tenant
        # Whoever has a token in the operators' file manages the whole site.
        source = await moves.tenant(body.source) if who.kind == "operator" else None
        if source is None:
            raise not_found("tenant")
        return source


async def _check_version(rows: DeviceRows, mac: str, version: int | None) -> None:
    row = await rows.read(mac)
    if row is None:
        raise not_found("device")
    if version not in (None, row.version):
        raise VersionConflict(f"the device has version {row.version}")

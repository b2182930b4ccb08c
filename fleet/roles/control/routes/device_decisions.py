"""`/v1/devices/{mac}:VERB`: who may connect, and who owns a MAC.

A decision is first written into the audit log, and then carried out in Redis; the other way round, a change of who may
connect could be without an audit line. A kill in between leaves a decision that is perhaps not carried out: its client
got no answer, a repetition under the same Idempotency-Key is told so, and a new decision ends the same.
"""

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any, TypeVar

from fastapi import Request

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.claims import Claim
from fleet.adapters.redis.access.decisions import Asker, Decisions
from fleet.adapters.redis.devices.debugging import DebuggedDevices
from fleet.adapters.sql.device_moves import DeviceMoves
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.core.permissions import DEVICES_WRITE
from fleet.ground.errors import ConfigError, Overloaded
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.device_queries import read_mac
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.wrong_codes import WrongCodes
from fleet.wire.control.devices import (
    BindByCode,
    BindByMac,
    ClaimChoice,
    DebugTime,
    DecisionOutcome,
)

T = TypeVar("T")
_FOR_UNSEEN = ("bind", "revoke")
"""Decisions about devices that were never seen: they register them."""
_POWER_CYCLE = "the device must be switched off and on"


class DecisionRoutes:
    """Decisions about devices."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._store = services, services.store
        self._decisions = Decisions(services.store)
        self._own, self._wrong_codes = OwnDevices(services), WrongCodes()
        routes.add("POST /devices:bind", self.bind_by_code, DEVICES_WRITE)
        for verb in ("bind", "unbind", "accept", "refuse", "revoke", "unrevoke", "debug"):
            routes.add(f"POST /devices/{{mac}}:{verb}", getattr(self, verb), DEVICES_WRITE)

    async def bind_by_code(self, request: Request, who: Who, body: BindByCode) -> DecisionOutcome:
        """Bind the device that shows a code. It becomes one of this tenant, unless another tenant has it."""
        code = body.code.replace(" ", "")
        mac = await self._shown_by(who, code)
        async with self._services.changes.begin(request) as change:
            if not await DeviceMoves(change.sql).take(mac, who.tenant):
                raise Problem(409, "taken", "this device belongs to another tenant")
            await change.audit("device.bind", f"device/{mac}", after={"by": "code"})
            await change.pin()
        asker = await self._decisions.by_code(code)
        if asker is None or asker.mac != mac:
            raise not_found("code shown now")
        return await self._bind(asker, now=body.now)

    async def _shown_by(self, who: Principal, code: str) -> str:
        """Return the MAC of the device that shows a code; wrong ones are limited."""
        self._wrong_codes.begin(who.tenant)
        mac = await Activations(self._store).shown_by(code)
        if mac is None:
            self._wrong_codes.was_wrong()
            raise not_found("code shown now")
        self._wrong_codes.was_right(who.tenant)
        return mac

    async def bind(self, request: Request, who: Who, mac: str, body: BindByMac) -> DecisionOutcome:
        """Bind a MAC to a client; without one, to the first client that asks with it."""
        name = await self._decide(request, who, mac, "bind", {"client": body.client})
        return await self._bind(Asker(name, body.client), now=body.now)

    async def unbind(self, request: Request, who: Who, mac: str) -> DecisionOutcome:
        """Remove the owner of a device, and refuse its passwords at once. It must be activated at its next start."""
        name = await self._decide(request, who, mac, "unbind")
        had = await self._decisions.unbind(name)
        return await self._outcome(name, changed=had, note=_POWER_CYCLE)

    async def accept(self, request: Request, who: Who, mac: str, body: ClaimChoice) -> DecisionOutcome:
        """Accept a claim: its client becomes the owner. The passwords of the earlier owner are replaced."""
        claim = await self._claim(who, mac, body.client)
        await self._decide(request, who, mac, "accept", {"client": claim.client})
        return await self._bind(Asker(claim.mac, claim.client), now=body.now)

    async def refuse(self, request: Request, who: Who, mac: str, body: ClaimChoice) -> DecisionOutcome:
        """Refuse a claim: its client gets no code for 30 days."""
        claim = await self._claim(who, mac, body.client)
        await self._decide(request, who, mac, "refuse", {"client": claim.client})
        await self._decisions.refuse(claim)
        return await self._outcome(claim.mac, changed=True)

    async def revoke(self, request: Request, who: Who, mac: str) -> DecisionOutcome:
        """Revoke a device: within five seconds its connection is closed, and its passwords are refused."""
        name = await self._decide(request, who, mac, "revoke")
        return await self._outcome(name, changed=await _possible(self._decisions.revoke(name)))

    async def unrevoke(self, request: Request, who: Who, mac: str) -> DecisionOutcome:
        """Allow a revoked device again."""
        name = await self._decide(request, who, mac, "unrevoke")
        changed = await self._decisions.unrevoke(name)
        return await self._outcome(name, changed=changed, note=_POWER_CYCLE if changed else "")

    async def debug(self, request: Request, who: Who, mac: str, body: DebugTime) -> DecisionOutcome:
        """Log a device at the level debug for some minutes, in all processes."""
        name = await self._decide(request, who, mac, "debug", {"minutes": body.minutes})
        await _possible(DebuggedDevices(self._store).set(name, body.minutes * 60))
        return DecisionOutcome(mac=name, changed=True)

    async def _decide(
        self, request: Request, who: Principal, mac: str, verb: str, after: dict[str, Any] | None = None
    ) -> str:
        """Write a decision about a device of the tenant into the audit log; return its MAC."""
        name = read_mac(mac)
        async with self._services.changes.begin(request) as change:
            rows = DeviceRows(change.sql, who.tenant)
            if verb in _FOR_UNSEEN:
                await rows.add([NewDevice(name)])
            # Of a device about which somebody decides, the row is kept.
            if name not in await rows.keep([name]):
                raise not_found("device")
            await change.audit(f"device.{verb}", f"device/{name}", after=after)
            await change.pin()
        return name

    async def _bind(self, asker: Asker, *, now: bool) -> DecisionOutcome:
        until = 0 if now else int(datetime.now(UTC).timestamp() + self._services.settings.renewal_days * 86_400)
        raised = await self._decisions.bind(asker, until)
        note = "" if raised is None else _POWER_CYCLE if not until else "earlier passwords end when it has a new one"
        return await self._outcome(asker.mac, changed=True, note=note)

    async def _outcome(self, mac: str, *, changed: bool, note: str = "") -> DecisionOutcome:
        await self._own.refresh(mac)
        return DecisionOutcome(mac=mac, changed=changed, note=note)

    async def _claim(self, who: Principal, mac: str, client: str) -> Claim:
        name = await self._own.known(who, mac)
        found = await self._decisions.claims_of(name, client)
        if not found:
            raise not_found("claim")
        if len(found) > 1:
            raise Problem(409, "several-claims", "there are several such claims: name the client of one")
        return found[0]


async def _possible(work: Awaitable[T]) -> T:
    """Await a decision; a full list is a problem of the request.

    Raises:
        Problem: There is no room for one more (409).
    """
    try:
        return await work
    except (ConfigError, Overloaded) as error:
        raise Problem(409, "list-full", str(error)) from error

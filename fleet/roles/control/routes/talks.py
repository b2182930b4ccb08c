"""`/v1/talks`: talk to an agent from a browser, as a device of one's own."""

from fastapi import Request, Response

from fleet.adapters.redis.access.voice_tickets import TICKET_SECONDS, VoiceTicket, VoiceTickets
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.core.permissions import DEVICES_COMMAND
from fleet.roles.control.access import Who
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.problems import Problem
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.talk_places import TalkPlaces
from fleet.wire.control.talks import TalkTicket
from fleet.wire.voice_websocket import PATH


class TalkRoutes:
    """Lets a page be a device. Each token has one, so that its history, memory and agent stay."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._tickets = services, VoiceTickets(services.store)
        self._own = OwnDevices(services)
        routes.add("POST /talks", self.begin, DEVICES_COMMAND, model=TalkTicket, status=201)

    async def begin(self, request: Request, who: Who) -> Response:
        """Register the token's own device if it is new, and return a ticket that is valid once, for a minute."""
        mac = self._services.voice.mac_of(who)
        async with self._services.changes.begin(request) as change:
            rows = DeviceRows(change.sql, who.tenant)
            await rows.add([NewDevice(mac, name=f"Browser of {who.name}"[:100])])
            if mac not in await rows.keep([mac]):
                raise Problem(409, "taken", "the device of this token belongs to another tenant")
            await change.audit("talk.begin", f"device/{mac}")
            await change.pin()
        owned = await self._services.voice.own(mac)
        await self._services.voice.note(who)
        # What ends a talk makes a later generation. So what came before the one of this ticket is asked for after it.
        await self._services.check_now(who)
        ticket = VoiceTicket(mac, owned.client, owned.generation, who.expires or 0)
        secret = await self._tickets.issue(ticket)
        await self._own.refresh(mac)
        places = TalkPlaces.by(self._services.settings)
        answer = TalkTicket(
            device=mac,
            ticket=secret,
            seconds=TICKET_SECONDS,
            url=places.url,
            path=PATH,
            port=places.port,
            tls_port=places.tls_port,
        )
        return Response(answer.model_dump_json(), 201, {"Cache-Control": "no-store"}, "application/json")

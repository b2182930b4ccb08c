"""`/v1/me`: who the token of a request is."""

from fleet.roles.control.access import Who
from fleet.roles.control.routing import ANY_SCOPE, Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.shapes import time_or_none
from fleet.wire.control.tokens import Me


class MeRoutes:
    """Names the principal of a request."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        routes.add("GET /me", self.read, ANY_SCOPE)

    async def read(self, who: Who) -> Me:
        """Return whose token this is, its tenant and its scopes."""
        tenant = await self._services.tokens.tenant_name(who.tenant)
        return Me(
            kind=who.kind, name=who.name, tenant=tenant, scopes=sorted(who.scopes), expires=time_or_none(who.expires)
        )

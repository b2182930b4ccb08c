"""`/v1/devices/{mac}/tools`: what a device can be asked to do."""

from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.devices.tools import ToolLists
from fleet.adapters.sql.device_rows import DeviceRows
from fleet.core.permissions import DEVICES_READ
from fleet.core.tool_policy import ToolSource, risk_of
from fleet.core.user_tools import is_for_users, user_tools
from fleet.roles.control.access import Who
from fleet.roles.control.own_devices import OwnDevices
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire import dialects
from fleet.wire.control.devices import OfferedTool, ToolNames
from fleet.wire.mcp import ToolSpec


class DeviceToolRoutes:
    """Shows the tools of a device."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._database = services.database
        self._devices, self._lists = Devices(services.store), ToolLists(services.store)
        self._own = OwnDevices(services)
        routes.add("GET /devices/{mac}/tools", self.read, DEVICES_READ)

    async def read(self, who: Who, mac: str) -> ToolNames:
        """Return the tools of a device, with their schemas and what a call of them can do."""
        device = await self._own.known(who, mac)
        names = await DeviceRows(self._database, who.tenant).tools(device)
        dialect = (await self._devices.read(device)).dialect
        firmware = dialects.find(dialect).capabilities.firmware_tools
        listed = await self._lists.read(device)
        known = {tool.name for tool in listed}
        more = [tool for tool in user_tools() if tool.name not in known] if firmware else []
        source: ToolSource = "device" if firmware else "program"
        return ToolNames(items=names, tools=[_offered(tool, source) for tool in (*listed, *more)])


def _offered(tool: ToolSpec, source: ToolSource) -> OfferedTool:
    return OfferedTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        risk=risk_of(tool.name, source),
        user_only=is_for_users(tool, source),
    )

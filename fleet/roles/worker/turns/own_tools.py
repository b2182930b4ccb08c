"""The tools of the server in a turn of a device, with those that know this device."""

from datetime import UTC, datetime

from fleet.adapters.redis.sessions.turn_context import Context
from fleet.adapters.tools.beside import ToolsBeside
from fleet.adapters.tools.memory import memory_tools
from fleet.adapters.tools.reminders import ReminderTools
from fleet.core.server_tools import Caller, ServerTools
from fleet.core.text.phrases import written_language
from fleet.ground.local_time import own_zone
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.turns.device_memory import DeviceMemory
from fleet.roles.worker.turns.device_reminders import TurnReminders
from fleet.roles.worker.turns.turn_agent import TurnAgent
from fleet.wire.edge_messages import UtteranceEvent


def server_tools(
    resources: WorkerResources,
    shard: Shard,
    agent: TurnAgent,
    context: Context,
    heard: UtteranceEvent,
    caller: Caller,
) -> ServerTools | None:
    """Return the server's tools in one turn; None if there are none."""
    tools, mac = resources.server_tools, heard.device
    if tools is not None and resources.settings.mcp_enabled:
        zone = own_zone(context.timezone, resources.settings.timezone)
        language = caller.persona.language or heard.language or written_language(heard.text)
        kept = TurnReminders(resources.reminders, shard.owner, mac, heard.turn, zone, language)
        tools = ToolsBeside(tools, ReminderTools(kept, lambda: datetime.now(UTC)).tools())
    if agent.remembers:
        memory = DeviceMemory(resources.memories, shard.owner, mac, context.facts)
        tools = ToolsBeside(tools, memory_tools(memory))
    return tools

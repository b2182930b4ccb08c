"""What all connections of a gateway share."""

from dataclasses import dataclass, field

from fleet.adapters.redis.sessions.gateway_sessions import GatewaySessions
from fleet.core.ports import Llm
from fleet.core.server_tools import ServerTools
from fleet.roles.gateway.settings import GatewaySettings
from fleet.roles.gateway.turns.tool_room import ToolRoom


@dataclass(frozen=True, slots=True)
class ModelTerms:
    """How the model is asked before a client configures anything."""

    temperature: float
    max_tokens: int
    """The most that a client may ask for, too."""


@dataclass(frozen=True, slots=True)
class GatewayResources:
    """What all connections of a gateway share."""

    settings: GatewaySettings
    llm: Llm
    terms: ModelTerms
    tools: ServerTools
    sessions: GatewaySessions
    tool_room: ToolRoom = field(default_factory=ToolRoom)
    """For the tools of all connections together."""

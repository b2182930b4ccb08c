"""The resources that all connections of a gateway share."""

from dataclasses import dataclass, field

from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.sessions.gateway_sessions import GatewaySessions
from fleet.core.agent_settings import AgentModels
from fleet.core.server_tools import ServerTools
from fleet.core.shared_budget import SharedBudget
from fleet.ground.loop_budget import LoopBudget
from fleet.roles.gateway.settings import GatewaySettings
from fleet.roles.gateway.turns.client_tools import LARGEST_OF_ALL
from fleet.roles.gateway.turns.text_budget import TEXTS_OF_ALL


@dataclass(frozen=True, slots=True)
class ModelTerms:
    """The options of the model before a client configures any."""

    temperature: float
    max_tokens: int
    """Also the highest value that a client may configure."""


@dataclass(frozen=True, slots=True)
class GatewayResources:
    """The resources that all connections of a gateway share."""

    settings: GatewaySettings
    models: AgentModels
    terms: ModelTerms
    tools: ServerTools
    sessions: GatewaySessions
    agents: KnownAgents
    tool_budget: SharedBudget = field(default_factory=lambda: SharedBudget(LARGEST_OF_ALL))
    """Characters of JSON, for the tools of all connections together."""
    text_budget: SharedBudget = field(default_factory=lambda: SharedBudget(TEXTS_OF_ALL))
    """Bytes of memory, for the texts of all connections that are not answered yet."""
    parsing: LoopBudget = field(default_factory=LoopBudget)
    """Limits the parsing of frames in one iteration of the event loop; its keys are the clients' addresses."""

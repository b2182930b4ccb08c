"""The resources that all connections of a gateway share."""

from dataclasses import dataclass, field

from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.sessions.gateway_sessions import GatewaySessions
from fleet.core.agent_settings import AgentModels
from fleet.core.server_tools import ServerTools
from fleet.core.shared_budget import SharedBudget
from fleet.ground.loop_budget import LoopBudget
from fleet.roles.gateway.settings import GatewaySettings

LARGEST_OF_ALL = 8 * 1024 * 1024
"""Characters of JSON of all connections' tools; as objects they take up to 25 times as many bytes. This is enough for
64 connections of the largest size, which are more than one address may open by default."""
TEXTS_OF_ALL = 128 * 1024 * 1024
"""Bytes of all connections' texts; more than a quarter of 100 connections can hold, which is what one address may open
by default."""


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

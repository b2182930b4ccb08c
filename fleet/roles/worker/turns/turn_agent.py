"""The agent of one turn: what it says in place of the worker's settings."""

from dataclasses import dataclass

from fleet.adapters.redis.sessions.history_terms import HistoryTerms
from fleet.adapters.redis.sessions.turn_context import Context
from fleet.adapters.tools.languages import introduce_language
from fleet.core.agent_settings import chosen_persona, llm_options, override, persona_of
from fleet.core.memory import describe_facts
from fleet.core.ports import Llm, LlmOptions
from fleet.core.prompt import DEVICE_PROMPT, write_prompt
from fleet.core.server_tools import Persona
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.settings import WorkerSettings
from fleet.wire.agents import CompiledAgent


@dataclass(frozen=True, slots=True)
class TurnAgent:
    """The agent that a turn found when it began."""

    digest: str
    agent: CompiledAgent
    settings: WorkerSettings
    """With the agent's fields in place of the settings."""

    @classmethod
    async def find(cls, resources: WorkerResources, digest: str) -> "TurnAgent":
        """Return the agent of a digest.

        Raises:
            Unavailable: Redis is away.
        """
        agent = await resources.agents.find(digest)
        return cls(digest, agent, override(resources.settings, agent.document))

    @property
    def remembers(self) -> bool:
        """Whether facts are remembered beyond the history."""
        return self.settings.memory == "on"

    @property
    def history(self) -> HistoryTerms:
        """How long the history is kept."""
        return HistoryTerms(self.settings.history_seconds, remembers=self.remembers)

    @property
    def options(self) -> LlmOptions:
        """Options of requests to the model."""
        return llm_options(self.agent.document)

    async def model(self, resources: WorkerResources) -> Llm:
        """Return the chat model.

        Raises:
            ProviderError: The agent's model cannot be opened.
        """
        return await resources.models.find(self.agent)

    def persona(self, chosen: Persona) -> Persona:
        """Return the persona: what the user has chosen, else the agent's."""
        return persona_of(self.agent.document, chosen)

    def chosen(self, persona: Persona) -> Persona:
        """Return what of a persona is not the agent's, so that the user chose it."""
        return chosen_persona(self.agent.document, persona)

    def prompt(self, resources: WorkerResources, context: Context) -> str:
        """Return the system prompt."""
        persona, tools = self.persona(context.persona), resources.server_tools
        introduction = tools.introduce(persona) if tools else introduce_language(persona)
        facts = describe_facts(context.facts) if self.remembers else ""
        return write_prompt(self.settings.prompt or DEVICE_PROMPT, persona=introduction, facts=facts)

"""Let the model of an agent answer one text, without tools, history and memory."""

from contextlib import aclosing
from datetime import UTC, datetime

from fleet.adapters.tools.languages import introduce_language
from fleet.core.agent_settings import AgentModels, llm_options, persona_of
from fleet.core.ports import Llm, Message, TextDelta, TokensUsed, TokenUsage
from fleet.core.prompt import DEVICE_PROMPT, write_prompt
from fleet.core.server_tools import Persona
from fleet.core.situation import describe_situation, situate
from fleet.ground.errors import ProviderError
from fleet.wire.agents import CompiledAgent

LONGEST_ANSWER = 20_000
"""Characters of an answer that are read."""


class NoModels:
    """Stands for the models in a process that has none."""

    async def find(self, agent: CompiledAgent) -> Llm:
        """See `AgentModels`."""
        raise ProviderError("this process of control has no chat model", retryable=False)


async def try_document(models: AgentModels, agent: CompiledAgent, text: str) -> tuple[str, TokenUsage]:
    """Return what the model answers to a text, and its tokens.

    Raises:
        ProviderError: The model failed.
    """
    persona = introduce_language(persona_of(agent.document, Persona()))
    prompt = write_prompt(agent.document.prompt or DEVICE_PROMPT, persona=persona)
    asked = (Message("system", prompt), *situate((), text, describe_situation(datetime.now(UTC))))
    model, answer, usage = await models.find(agent), "", TokenUsage()
    async with aclosing(model.stream(asked, (), llm_options(agent.document))) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                answer += event.text
            elif isinstance(event, TokensUsed):
                usage += event.usage
            if len(answer) > LONGEST_ANSWER:
                break
    return answer[:LONGEST_ANSWER], usage

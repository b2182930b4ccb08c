"""How an agent's document takes the place of settings."""

from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeVar

from fleet.core.ports import USUAL_VOICE, Llm, LlmOptions, VoiceOptions
from fleet.core.server_tools import Persona
from fleet.wire.agents import AgentDocument, CompiledAgent

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)
else:
    T = TypeVar("T")


class AgentModels(Protocol):
    """Finds the chat model of an agent."""

    async def find(self, agent: CompiledAgent) -> Llm:
        """Return the model, the same for all turns of agents with equal choices.

        Raises:
            ProviderError: It cannot be opened.
        """


class OneModel:
    """The same chat model for every agent.

    Args:
        llm: The model.
    """

    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    async def find(self, agent: CompiledAgent) -> Llm:
        """See `AgentModels`."""
        return self._llm


@cache
def _names(kind: "type[DataclassInstance]") -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def override(settings: T, document: AgentDocument) -> T:
    """Return a role's slice of the settings, with the fields that the document sets in their place."""
    if not document.model_fields_set:
        return settings
    names = document.model_fields_set & _names(type(settings))
    set_fields = {name: value for name in names if (value := getattr(document, name)) is not None}
    return replace(settings, **set_fields) if set_fields else settings


def persona_of(document: AgentDocument, chosen: Persona) -> Persona:
    """Return the persona of a conversation: what its user has chosen, else the agent's."""
    language = document.language if document.language != "auto" else None
    return Persona(chosen.language or language or "", chosen.character or document.character or "")


def chosen_persona(document: AgentDocument, persona: Persona) -> Persona:
    """Return what of a conversation's persona is not the agent's, so that its user chose it."""
    own = persona_of(document, Persona())
    return Persona(
        "" if persona.language == own.language else persona.language,
        "" if persona.character == own.character else persona.character,
    )


def llm_options(document: AgentDocument) -> LlmOptions:
    """Return the options of requests to the chat model."""
    return LlmOptions(document.chat.temperature, document.chat.max_tokens)


def voice_options(document: AgentDocument) -> VoiceOptions:
    """Return the options of the voice."""
    voice = document.voice
    if voice.name is None and voice.speed is None:
        return USUAL_VOICE
    return VoiceOptions(voice.name or "", voice.speed or USUAL_VOICE.speed)

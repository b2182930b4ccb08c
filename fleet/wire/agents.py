"""What an agent is: how the server hears, thinks and speaks with some of its devices.

People write an `AgentDocument` (REST, SQL). Control compiles it into a `CompiledAgent`, which workers, edges and
gateways read from Redis. A field that is None leaves the choice to the setting of the same name. Fields of a newer
version are ignored, so that two versions can run side by side during a rollout.
"""

import hashlib
from functools import cached_property
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

ProviderKind = Literal["chat", "recognition", "voice"]

Name = Annotated[str, Field(min_length=1, max_length=128)]
Language = Annotated[str, Field(pattern=r"^([a-z]{2,3}|auto)$")]

TOOL_RULES: Final = r"^(\s*(allow|ask|deny)\s+[^\s,]+\s*(,|$))*$"
"""The form of a tool policy (`fleet.core.tool_policy.read_policy`)."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ChatChoice(_Part):
    """The chat model."""

    provider: Name | None = None
    """Name of a provider of the kind `chat`; None for the endpoint of the settings."""
    model: Name | None = None
    """Its name at the endpoint; None for that of the provider, or of the settings."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=100_000)] | None = None


class RecognitionChoice(_Part):
    """The recognition of speech."""

    provider: Name | None = None
    """Name of a provider of the kind `recognition`; None for that of the settings."""
    model: Name | None = None


class VoiceChoice(_Part):
    """The voice."""

    provider: Name | None = None
    """Name of a provider of the kind `voice`; None for that of the settings."""
    model: Name | None = None
    name: Name | None = None
    """The voice's name at its provider; offline `zf_xiaoxiao` or `zm_yunxi` for Chinese."""
    speed: Annotated[float, Field(ge=0.5, le=2.0)] | None = None
    """1 is the usual speed."""


class AgentDocument(_Part):
    """The fields of an agent, as people write them."""

    prompt: Annotated[str, Field(max_length=20_000)] | None = None
    """System prompt; the server adds the time, the language and the persona."""
    language: Language | None = None
    """Language that the users speak and are answered in."""
    character: Annotated[str, Field(max_length=64)] | None = None
    """Name of the role that the model plays until the user chooses another (FLEET_CHARACTERS)."""
    greeting: Annotated[str, Field(max_length=300)] | None = None
    """Spoken when a device begins its first listening period of a session; push-to-talk has none."""
    chat: ChatChoice = ChatChoice()
    recognition: RecognitionChoice = RecognitionChoice()
    voice: VoiceChoice = VoiceChoice()
    tool_policy: Annotated[str, Field(max_length=4_000, pattern=TOOL_RULES)] | None = None
    """Which tools the model may call, as in FLEET_TOOL_POLICY; an empty text allows all."""
    history_messages: Annotated[int, Field(ge=0, le=100)] | None = None
    history_seconds: Annotated[int, Field(ge=60, le=90 * 24 * 3600)] | None = None
    memory: Literal["on", "off"] | None = None
    idle_seconds: Annotated[float, Field(ge=5, le=110)] | None = None
    endpoint_ms: Annotated[int, Field(ge=200, le=3000)] | None = None
    endpoint_max_ms: Annotated[int, Field(ge=200, le=3000)] | None = None
    pause_ms: Annotated[int, Field(ge=60, le=3000)] | None = None
    interruption: Literal["off", "low", "normal", "high"] | None = None
    interruption_keywords: Annotated[str, Field(max_length=1000)] | None = None
    """Texts, separated by commas."""
    filler_seconds: Annotated[float, Field(ge=0, le=30)] | None = None


class Endpoint(_Part):
    """A provider of the catalogue as the roles need it."""

    adapter: str = "openai"
    """`openai` (any compatible endpoint), `offline`, or the name of an installed plugin."""
    base_url: str | None = None
    key: str = Field(default="", repr=False)
    """Sealed (`fleet.adapters.sealing`); empty for none."""
    model: str | None = None
    voice: str | None = None
    sample_rate: int | None = None
    """Of a voice's audio in Hz; None for TTS_SAMPLE_RATE."""


class CompiledAgent(_Part):
    """An agent as it is stored in Redis, complete: it names no other record."""

    id: str = ""
    """Empty for the settings alone."""
    name: str = ""
    version: int = 0
    document: AgentDocument = AgentDocument()
    endpoints: dict[ProviderKind, Endpoint] = {}
    """The providers that the document names, by kind."""

    @cached_property
    def digest(self) -> str:
        """The name of exactly this content."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:24]


NO_AGENT = CompiledAgent()
"""The settings alone."""

"""Providers: the catalogue of endpoints that agents name."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, StringConstraints

from fleet.wire.agents import ProviderKind
from fleet.wire.control.agents import ObjectName
from fleet.wire.control.shapes import NUMBER, Shape


def _address(text: str) -> str:
    """Refuse what no client can connect to."""
    parts = urlsplit(text)
    if text and (not parts.hostname or parts.port == 0):
        raise ValueError("an address like http://host:8000/v1 is expected")
    return text


Address = Annotated[
    str, StringConstraints(pattern=r"^(https?://[^\s?#@]+)?$", max_length=500), AfterValidator(_address)
]
Text = Annotated[str, StringConstraints(max_length=128)]
Key = Annotated[SecretStr, Field(max_length=1000)]
Voices = Annotated[list[Text], Field(max_length=200)]


class NewProvider(Shape):
    """A provider to add. Its key is encrypted and never shown again."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "house", "kind": "chat", "base_url": "http://llm.example/v1"}]}
    )

    name: ObjectName
    kind: ProviderKind
    adapter: ObjectName = "openai"
    """`openai` (any compatible endpoint), `offline` (recognition and voices), or the name of an installed plugin."""
    base_url: Address = ""
    key: Key = SecretStr("")
    model: Text = ""
    voices: Voices = Field(default_factory=list)
    sample_rate: Annotated[int, Field(ge=0, le=48_000), NUMBER] = 0
    """Of the audio of a voice in Hz; 0 for TTS_SAMPLE_RATE."""


class ProviderChange(Shape):
    """What to change of a provider; an empty key removes it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "small"}]})

    base_url: Address | None = None
    key: Key | None = None
    model: Text | None = None
    voices: Voices | None = None
    sample_rate: Annotated[int, Field(ge=0, le=48_000), NUMBER] | None = None


class Provider(Shape):
    """A provider; `has_key` says whether a key is stored."""

    id: int
    name: str
    kind: ProviderKind
    adapter: str
    base_url: str
    has_key: bool
    model: str
    voices: list[str]
    sample_rate: int


class VoiceTrial(Shape):
    """A text that a voice is to read."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Good morning."}]})

    text: Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
    voice: Text = ""
    """Its name at the provider; empty for the provider's first one."""


class VoiceSample(Shape):
    """What a voice made of a text: a WAV file in Base64, and after how many seconds the first of it came."""

    wav: str
    first_seconds: float
    seconds: float


class ProviderProof(Shape):
    """What the endpoint of a provider answered when it was asked for its models."""

    reachable: bool
    seconds: float
    detail: str = ""
    models: list[str] = Field(default_factory=list)

"""The settings of conversations."""

from pydantic import BaseModel, Field


class Conversation(BaseModel):
    """How a conversation goes."""

    language: str = Field("auto", description="Language of speech: `auto` (of FLEET_LANGUAGES) or an ISO 639-1 code.")
    languages: str = Field("en,zh", description="Languages that `auto` may choose from.")
    prompt: str | None = Field(None, description="System prompt; a short one of fleet's own without it.")
    idle_seconds: float = Field(60.0, ge=5, le=110, description="Silence after which the server says goodbye.")
    turn_seconds: float = Field(
        60.0,
        gt=0,
        description="Longest time from an utterance to the end of writing its answer, without the time of slow tools.",
    )
    tool_seconds: float = Field(
        10.0, gt=0, description="Longest time to wait for a tool's answer; photos and upgrades get more."
    )
    endpoint_ms: int = Field(
        600, ge=200, le=3000, description="Silence that ends an utterance in auto and realtime mode."
    )
    pause_ms: int = Field(
        240,
        ge=100,
        description="Silence after which recognition begins early; as long as FLEET_ENDPOINT_MS: never.",
    )
    history_messages: int = Field(20, ge=0, description="Messages of a device's history that the model is given.")
    history_seconds: int = Field(3600, ge=60, description="How long a device's history is kept after its last turn.")

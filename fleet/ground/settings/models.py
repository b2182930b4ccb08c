"""The settings of models and engines."""

from pathlib import Path

from pydantic import SecretStr

from fleet.ground.settings.address_types import HttpUrl
from fleet.ground.settings.fields import SettingGroup, setting

_URL = "http(s)://…/v1"
_NONE = "none is sent"


class ModelGroup(SettingGroup):
    """Chat model, recognition, voices, and the model for photos; endpoints are OpenAI-compatible.

    Without a base URL, recognition and voices run on this machine with the offline set, and need no key. A provider
    may also be a plugin (docs/howto/write-a-plugin.md), which gets the other settings of its kind.
    """

    title = "Models"

    llm_provider: str = setting("openai", ("worker", "gateway", "control"), variable="LLM_PROVIDER")
    """Provider of the chat model: `openai` (any compatible endpoint), or the name of an installed plugin."""

    llm_base_url: HttpUrl | None = setting(
        None,
        ("worker", "api", "gateway", "control"),
        variable="LLM_BASE_URL",
        syntax=_URL,
        unset="none, and neither worker nor gateway starts; `fleet up` starts the demo model",
        masked="part",
    )
    """Chat endpoint: `chat/completions` with streaming and tools."""
    llm_model: str = setting(
        "fleet-demo",
        ("worker", "api", "gateway", "control"),
        variable="LLM_MODEL",
        unset="chosen from the endpoint's list; `fleet-demo` with the demo model",
    )
    """Name of the chat model. If it is not set, fleet reads the endpoint's list of models, and uses Qwen3-30B-A3B if
    the list has it or is empty, else the first chat model."""
    llm_api_key: SecretStr | None = setting(
        None, ("worker", "api", "gateway", "control"), variable="LLM_API_KEY", unset=_NONE
    )
    """Key of the chat endpoint. The api needs it for photos only."""
    llm_temperature: float | None = setting(
        None,
        ("worker", "gateway", "control"),
        variable="LLM_TEMPERATURE",
        ge=0,
        unset="the endpoint's own; 0.7 in the gateway",
    )
    """Sampling temperature. Clients of the gateway may choose another one."""
    llm_max_tokens: int | None = setting(
        None,
        ("worker", "gateway", "control"),
        variable="LLM_MAX_TOKENS",
        unit="tokens",
        ge=1,
        unset="the endpoint's own; 2048 in the gateway",
    )
    """Longest answer. Clients of the gateway may choose another limit."""
    llm_timeout: float = setting(120.0, ("worker", "gateway", "control"), variable="LLM_TIMEOUT", unit="seconds", gt=0)
    """Longest time of one request to the chat model, until its last token, with all attempts and the fallback."""
    llm_silence_seconds: float | None = setting(
        None,
        ("worker", "gateway", "control"),
        variable="LLM_SILENCE_SECONDS",
        unit="seconds",
        gt=0,
        unset="8; LLM_TIMEOUT in the gateway",
    )
    """Longest silence of the model within LLM_TIMEOUT, before its first token and between two tokens. With a fallback,
    each endpoint gets half of it. A value applies to voice devices and to clients of the gateway."""
    llm_fallback_base_url: HttpUrl | None = setting(
        None,
        ("worker", "gateway", "control"),
        variable="LLM_FALLBACK_BASE_URL",
        syntax=_URL,
        unset="no second endpoint",
        masked="part",
    )
    """Second chat endpoint, used when the first one fails before its first token."""
    llm_fallback_model: str | None = setting(
        None,
        ("worker", "gateway", "control"),
        variable="LLM_FALLBACK_MODEL",
        unset="chosen from its list, as for LLM_MODEL",
    )
    """Name of the second endpoint's model."""
    llm_fallback_api_key: SecretStr | None = setting(
        None, ("worker", "gateway", "control"), variable="LLM_FALLBACK_API_KEY", unset=_NONE
    )
    """Key of the second endpoint."""
    asr_provider: str | None = setting(
        None, ("edge",), variable="ASR_PROVIDER", unset="`openai` if ASR_BASE_URL is set, else `offline`"
    )
    """Provider of recognition: `openai` (any compatible endpoint), `offline`, or the name of an installed plugin."""
    asr_base_url: HttpUrl | None = setting(
        None, ("edge",), variable="ASR_BASE_URL", syntax=_URL, unset="Whisper base on this machine", masked="part"
    )
    """Endpoint for recognition: `audio/transcriptions`. Voice detection is always local."""
    asr_model: str = setting("whisper-1", ("edge",), variable="ASR_MODEL")
    """Name of the model for recognition."""
    asr_api_key: SecretStr | None = setting(None, ("edge",), variable="ASR_API_KEY", unset=_NONE)
    """Key of the endpoint for recognition."""
    asr_language: str | None = setting(
        None, ("edge",), variable="ASR_LANGUAGE", syntax="a value that the endpoint accepts, such as `en`", unset=_NONE
    )
    """Language in requests to the endpoint for recognition."""
    asr_sample_rate: int = setting(16000, ("edge",), variable="ASR_SAMPLE_RATE", unit="hertz", ge=8000, le=48000)
    """Sample rate of the WAV in requests to the endpoint for recognition."""
    asr_timeout: float = setting(5.0, ("edge",), variable="ASR_TIMEOUT", unit="seconds", gt=0)
    """Time to wait for a transcript from the endpoint."""
    tts_provider: str | None = setting(
        None, ("edge",), variable="TTS_PROVIDER", unset="`openai` if TTS_BASE_URL is set, else `offline`"
    )
    """Provider of voices: `openai` (any compatible endpoint), `offline`, or the name of an installed plugin."""
    tts_base_url: HttpUrl | None = setting(
        None,
        ("edge",),
        variable="TTS_BASE_URL",
        syntax=_URL,
        unset="Hibari (English) and Kokoro (Chinese) on this machine",
        masked="part",
    )
    """Endpoint for voices: `audio/speech` with `pcm`."""
    tts_model: str = setting("tts-1", ("edge", "control"), variable="TTS_MODEL")
    """Name of the model for voices."""
    tts_voice: str = setting("alloy", ("edge", "control"), variable="TTS_VOICE")
    """Voice of that model."""
    tts_api_key: SecretStr | None = setting(None, ("edge",), variable="TTS_API_KEY", unset=_NONE)
    """Key of the endpoint for voices."""
    tts_language: str | None = setting(
        None, ("edge",), variable="TTS_LANGUAGE", syntax="a value that the endpoint accepts, such as `en`", unset=_NONE
    )
    """Language in requests to the endpoint for voices."""
    tts_sample_rate: int = setting(
        24000, ("edge", "control"), variable="TTS_SAMPLE_RATE", unit="hertz", ge=8000, le=48000
    )
    """Sample rate of the PCM that the endpoint returns. With a wrong rate speech sounds too high or too low."""
    tts_timeout: float = setting(5.0, ("edge",), variable="TTS_TIMEOUT", unit="seconds", gt=0)
    """Time to wait for the endpoint's first chunk of audio, and for each further one."""
    vision_base_url: HttpUrl | None = setting(
        None,
        ("api",),
        variable="VISION_BASE_URL",
        syntax=_URL,
        unset="LLM_BASE_URL; no photos with the demo model",
        masked="part",
    )
    """Endpoint for photos: `chat/completions` with pictures."""
    vision_model: str | None = setting(None, ("api",), variable="VISION_MODEL", unset="the chat model's name")
    """Name of the model for photos."""
    vision_api_key: SecretStr | None = setting(
        None, ("api",), variable="VISION_API_KEY", unset="LLM_API_KEY if VISION_BASE_URL is not set, else none"
    )
    """Key of the endpoint for photos."""
    vision_timeout: float = setting(20.0, ("api",), variable="VISION_TIMEOUT", unit="seconds", gt=0)
    """Time to wait for the model's description of a photo; cameras wait 30 s."""
    model_dir: Path | None = setting(None, ("edge",), syntax="folder", unset="the installed files")
    """Folder of model files that replace those of the offline set with the same names. fleet does not verify them."""
    zh_voice: str = setting("zf_xiaoxiao", ("edge",), syntax="`zf_xiaoxiao` (a woman's) or `zm_yunxi` (a man's)")
    """Chinese voice of the offline set."""

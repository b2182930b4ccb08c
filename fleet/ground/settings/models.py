"""The settings of models and engines."""

from pathlib import Path

from pydantic import BaseModel, SecretStr

from fleet.ground.settings.address_types import HttpUrl
from fleet.ground.settings.fields import setting

_URL = "http(s)://…/v1"
_NONE = "none is sent"


class ModelGroup(BaseModel):
    """Chat model, recognition, voices, and the model for photos; endpoints are OpenAI-compatible.

    Without a base URL, recognition and voices run on this machine with the offline set, and need no key. A provider
    may also be a plugin (docs/howto/write-a-plugin.md), which gets the other settings of its kind.
    """

    llm_provider: str = setting(
        "openai",
        "Provider of the chat model: `openai` (any compatible endpoint), or the name of an installed plugin.",
        ("worker", "gateway"),
        variable="LLM_PROVIDER",
    )

    llm_base_url: HttpUrl | None = setting(
        None,
        "Chat endpoint: `chat/completions` with streaming and tools.",
        ("worker", "api", "gateway"),
        variable="LLM_BASE_URL",
        syntax=_URL,
        unset="none, and neither worker nor gateway starts; `fleet up` starts the demo model",
        masked="part",
    )
    llm_model: str = setting(
        "fleet-demo",
        "Name of the chat model. If it is not set, fleet reads the endpoint's list of models, and uses Qwen3-30B-A3B "
        "if the list has it or is empty, else the first chat model.",
        ("worker", "api", "gateway"),
        variable="LLM_MODEL",
        unset="chosen from the endpoint's list; `fleet-demo` with the demo model",
    )
    llm_api_key: SecretStr | None = setting(
        None,
        "Key of the chat endpoint. The api needs it for photos only.",
        ("worker", "api", "gateway"),
        variable="LLM_API_KEY",
        unset=_NONE,
    )
    llm_temperature: float | None = setting(
        None,
        "Sampling temperature. Clients of the gateway may choose another one.",
        ("worker", "gateway"),
        variable="LLM_TEMPERATURE",
        ge=0,
        unset="the endpoint's own; 0.7 in the gateway",
    )
    llm_max_tokens: int | None = setting(
        None,
        "Longest answer. Clients of the gateway may choose another limit.",
        ("worker", "gateway"),
        variable="LLM_MAX_TOKENS",
        unit="tokens",
        ge=1,
        unset="the endpoint's own; 2048 in the gateway",
    )
    llm_timeout: float = setting(
        120.0,
        "Longest time of one request to the chat model, until its last token, with all attempts and the fallback.",
        ("worker", "gateway"),
        variable="LLM_TIMEOUT",
        unit="seconds",
        gt=0,
    )
    llm_silence_seconds: float | None = setting(
        None,
        "Longest silence of the model within LLM_TIMEOUT, before its first token and between two tokens. With a "
        "fallback, each endpoint gets half of it. A value applies to voice devices and to clients of the gateway.",
        ("worker", "gateway"),
        variable="LLM_SILENCE_SECONDS",
        unit="seconds",
        gt=0,
        unset="8; LLM_TIMEOUT in the gateway",
    )
    llm_fallback_base_url: HttpUrl | None = setting(
        None,
        "Second chat endpoint, used when the first one fails before its first token.",
        ("worker", "gateway"),
        variable="LLM_FALLBACK_BASE_URL",
        syntax=_URL,
        unset="no second endpoint",
        masked="part",
    )
    llm_fallback_model: str | None = setting(
        None,
        "Name of the second endpoint's model.",
        ("worker", "gateway"),
        variable="LLM_FALLBACK_MODEL",
        unset="chosen from its list, as for LLM_MODEL",
    )
    llm_fallback_api_key: SecretStr | None = setting(
        None, "Key of the second endpoint.", ("worker", "gateway"), variable="LLM_FALLBACK_API_KEY", unset=_NONE
    )
    asr_provider: str | None = setting(
        None,
        "Provider of recognition: `openai` (any compatible endpoint), `offline`, or the name of an installed plugin.",
        ("edge",),
        variable="ASR_PROVIDER",
        unset="`openai` if ASR_BASE_URL is set, else `offline`",
    )
    asr_base_url: HttpUrl | None = setting(
        None,
        "Endpoint for recognition: `audio/transcriptions`. Voice detection is always local.",
        ("edge",),
        variable="ASR_BASE_URL",
        syntax=_URL,
        unset="Whisper base on this machine",
        masked="part",
    )
    asr_model: str = setting("whisper-1", "Name of the model for recognition.", ("edge",), variable="ASR_MODEL")
    asr_api_key: SecretStr | None = setting(
        None, "Key of the endpoint for recognition.", ("edge",), variable="ASR_API_KEY", unset=_NONE
    )
    asr_language: str | None = setting(
        None,
        "Language in requests to the endpoint for recognition.",
        ("edge",),
        variable="ASR_LANGUAGE",
        syntax="a value that the endpoint accepts, such as `en`",
        unset=_NONE,
    )
    asr_sample_rate: int = setting(
        16000,
        "Sample rate of the WAV in requests to the endpoint for recognition.",
        ("edge",),
        variable="ASR_SAMPLE_RATE",
        unit="hertz",
        ge=8000,
        le=48000,
    )
    asr_timeout: float = setting(
        5.0, "Time to wait for a transcript from the endpoint.", ("edge",), variable="ASR_TIMEOUT", unit="seconds", gt=0
    )
    tts_provider: str | None = setting(
        None,
        "Provider of voices: `openai` (any compatible endpoint), `offline`, or the name of an installed plugin.",
        ("edge",),
        variable="TTS_PROVIDER",
        unset="`openai` if TTS_BASE_URL is set, else `offline`",
    )
    tts_base_url: HttpUrl | None = setting(
        None,
        "Endpoint for voices: `audio/speech` with `pcm`.",
        ("edge",),
        variable="TTS_BASE_URL",
        syntax=_URL,
        unset="Hibari (English) and Kokoro (Chinese) on this machine",
        masked="part",
    )
    tts_model: str = setting("tts-1", "Name of the model for voices.", ("edge",), variable="TTS_MODEL")
    tts_voice: str = setting("alloy", "Voice of that model.", ("edge",), variable="TTS_VOICE")
    tts_api_key: SecretStr | None = setting(
        None, "Key of the endpoint for voices.", ("edge",), variable="TTS_API_KEY", unset=_NONE
    )
    tts_language: str | None = setting(
        None,
        "Language in requests to the endpoint for voices.",
        ("edge",),
        variable="TTS_LANGUAGE",
        syntax="a value that the endpoint accepts, such as `en`",
        unset=_NONE,
    )
    tts_sample_rate: int = setting(
        24000,
        "Sample rate of the PCM that the endpoint returns. With a wrong rate speech sounds too high or too low.",
        ("edge",),
        variable="TTS_SAMPLE_RATE",
        unit="hertz",
        ge=8000,
        le=48000,
    )
    tts_timeout: float = setting(
        5.0,
        "Time to wait for the endpoint's first chunk of audio, and for each further one.",
        ("edge",),
        variable="TTS_TIMEOUT",
        unit="seconds",
        gt=0,
    )
    vision_base_url: HttpUrl | None = setting(
        None,
        "Endpoint for photos: `chat/completions` with pictures.",
        ("api",),
        variable="VISION_BASE_URL",
        syntax=_URL,
        unset="LLM_BASE_URL; no photos with the demo model",
        masked="part",
    )
    vision_model: str | None = setting(
        None, "Name of the model for photos.", ("api",), variable="VISION_MODEL", unset="the chat model's name"
    )
    vision_api_key: SecretStr | None = setting(
        None,
        "Key of the endpoint for photos.",
        ("api",),
        variable="VISION_API_KEY",
        unset="LLM_API_KEY if VISION_BASE_URL is not set, else none",
    )
    vision_timeout: float = setting(
        20.0,
        "Time to wait for the model's description of a photo; cameras wait 30 s.",
        ("api",),
        variable="VISION_TIMEOUT",
        unit="seconds",
        gt=0,
    )
    model_dir: Path | None = setting(
        None,
        "Folder of model files that replace those of the offline set with the same names. fleet does not verify them.",
        ("edge",),
        syntax="folder",
        unset="the installed files",
    )
    zh_voice: str = setting(
        "zf_xiaoxiao",
        "Chinese voice of the offline set.",
        ("edge",),
        syntax="`zf_xiaoxiao` (a woman's) or `zm_yunxi` (a man's)",
    )

"""The settings of models and engines."""

from pathlib import Path

from pydantic import BaseModel, SecretStr

from fleet.ground.settings.fields import setting

_URL = "http(s)://…/v1"
_NONE = "none is sent"


class Models(BaseModel):
    """Chat model, recognition, voices, and the model for photos; endpoints are OpenAI-compatible.

    Without a base URL recognition and voices are those of the offline set on this machine, and no key is needed. A
    provider may also be a plugin (docs/howto/write-a-plugin.md); it is given the other settings of its kind.
    """

    llm_provider: str = setting(
        "openai",
        "Who provides the chat model: `openai` (any compatible endpoint), or the name of an installed plugin.",
        ("worker", "gateway"),
        variable="LLM_PROVIDER",
    )

    llm_base_url: str | None = setting(
        None,
        "Chat endpoint: `chat/completions` with streaming and tools.",
        ("worker", "api", "gateway"),
        variable="LLM_BASE_URL",
        form=_URL,
        without="none, and neither worker nor gateway starts; `fleet up` brings the demo model",
        hidden="part",
    )
    llm_model: str = setting(
        "fleet-demo",
        "Chat model's name. An endpoint that is asked which models it has gives Qwen3-30B-A3B if it lists that or "
        "nothing, else the first that chats.",
        ("worker", "api", "gateway"),
        variable="LLM_MODEL",
        without="the endpoint is asked; `fleet-demo` with the demo model",
    )
    llm_api_key: SecretStr | None = setting(
        None,
        "Chat endpoint's key. The api needs it for photos only.",
        ("worker", "api", "gateway"),
        variable="LLM_API_KEY",
        without=_NONE,
    )
    llm_temperature: float | None = setting(
        None,
        "Sampling temperature. Clients of the gateway may choose another.",
        ("worker", "gateway"),
        variable="LLM_TEMPERATURE",
        ge=0,
        without="the endpoint's own; 0.7 in the gateway",
    )
    llm_max_tokens: int | None = setting(
        None,
        "Longest answer. Clients of the gateway may choose another.",
        ("worker", "gateway"),
        variable="LLM_MAX_TOKENS",
        unit="tokens",
        ge=1,
        without="the endpoint's own; 2048 in the gateway",
    )
    llm_timeout: float = setting(
        120.0,
        "Longest time of one request to the chat model, from asking to its last token, with all attempts and the "
        "fallback.",
        ("worker", "gateway"),
        variable="LLM_TIMEOUT",
        unit="seconds",
        gt=0,
    )
    llm_silence_seconds: float | None = setting(
        None,
        "Longest silence of the model within that time, before its first token and between two. With a fallback each "
        "endpoint gets half of it. Set it to one value only if both who speaks and who writes can bear it.",
        ("worker", "gateway"),
        variable="LLM_SILENCE_SECONDS",
        unit="seconds",
        gt=0,
        without="8; LLM_TIMEOUT in the gateway",
    )
    llm_fallback_base_url: str | None = setting(
        None,
        "Second chat endpoint, asked when the first fails before its first word.",
        ("worker", "gateway"),
        variable="LLM_FALLBACK_BASE_URL",
        form=_URL,
        without="no second endpoint",
        hidden="part",
    )
    llm_fallback_model: str | None = setting(
        None,
        "Name of the second endpoint's model.",
        ("worker", "gateway"),
        variable="LLM_FALLBACK_MODEL",
        without="one that it lists, as for LLM_MODEL",
    )
    llm_fallback_api_key: SecretStr | None = setting(
        None, "Second endpoint's key.", ("worker", "gateway"), variable="LLM_FALLBACK_API_KEY", without=_NONE
    )
    asr_provider: str | None = setting(
        None,
        "Who recognises speech: `openai` (any compatible endpoint), `offline`, or the name of an installed plugin.",
        ("edge",),
        variable="ASR_PROVIDER",
        without="`openai` where ASR_BASE_URL is set, else `offline`",
    )
    asr_base_url: str | None = setting(
        None,
        "Endpoint for recognition: `audio/transcriptions`. Voice detection is always local.",
        ("edge",),
        variable="ASR_BASE_URL",
        form=_URL,
        without="Whisper base on this machine",
        hidden="part",
    )
    asr_model: str = setting("whisper-1", "Name of the model for recognition.", ("edge",), variable="ASR_MODEL")
    asr_api_key: SecretStr | None = setting(
        None, "Key of the endpoint for recognition.", ("edge",), variable="ASR_API_KEY", without=_NONE
    )
    asr_language: str | None = setting(
        None,
        "Language that the endpoint for recognition is told.",
        ("edge",),
        variable="ASR_LANGUAGE",
        form="what the endpoint takes, such as `en`",
        without=_NONE,
    )
    asr_sample_rate: int = setting(
        16000,
        "Sample rate of the WAV that the endpoint for recognition is sent.",
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
        "Who speaks: `openai` (any compatible endpoint), `offline`, or the name of an installed plugin.",
        ("edge",),
        variable="TTS_PROVIDER",
        without="`openai` where TTS_BASE_URL is set, else `offline`",
    )
    tts_base_url: str | None = setting(
        None,
        "Endpoint for voices: `audio/speech` with `pcm`.",
        ("edge",),
        variable="TTS_BASE_URL",
        form=_URL,
        without="Hibari (English) and Kokoro (Chinese) on this machine",
        hidden="part",
    )
    tts_model: str = setting("tts-1", "Name of the model for voices.", ("edge",), variable="TTS_MODEL")
    tts_voice: str = setting("alloy", "Voice of that model.", ("edge",), variable="TTS_VOICE")
    tts_api_key: SecretStr | None = setting(
        None, "Key of the endpoint for voices.", ("edge",), variable="TTS_API_KEY", without=_NONE
    )
    tts_language: str | None = setting(
        None,
        "Language that the endpoint for voices is told.",
        ("edge",),
        variable="TTS_LANGUAGE",
        form="what the endpoint takes, such as `en`",
        without=_NONE,
    )
    tts_sample_rate: int = setting(
        24000,
        "Sample rate of the PCM that the endpoint returns. A wrong one sounds too high or too low.",
        ("edge",),
        variable="TTS_SAMPLE_RATE",
        unit="hertz",
        ge=8000,
        le=48000,
    )
    tts_timeout: float = setting(
        5.0,
        "Time to wait for the endpoint's first and each next piece of audio.",
        ("edge",),
        variable="TTS_TIMEOUT",
        unit="seconds",
        gt=0,
    )
    vision_base_url: str | None = setting(
        None,
        "Endpoint for photos: `chat/completions` with pictures.",
        ("api",),
        variable="VISION_BASE_URL",
        form=_URL,
        without="LLM_BASE_URL; no photos with the demo model",
        hidden="part",
    )
    vision_model: str | None = setting(
        None, "Name of the model for photos.", ("api",), variable="VISION_MODEL", without="that of the chat model"
    )
    vision_api_key: SecretStr | None = setting(
        None,
        "Key of the endpoint for photos.",
        ("api",),
        variable="VISION_API_KEY",
        without="LLM_API_KEY where VISION_BASE_URL is not set, else none",
    )
    vision_timeout: float = setting(
        20.0,
        "Time to wait for what the model says of a photo; cameras wait 30 s.",
        ("api",),
        variable="VISION_TIMEOUT",
        unit="seconds",
        gt=0,
    )
    model_dir: Path | None = setting(
        None,
        "Model files that replace those of the offline set, by their names. They are not checked.",
        ("edge",),
        form="folder",
        without="those that were installed",
    )
    zh_voice: str = setting(
        "zf_xiaoxiao",
        "Chinese voice of the offline set.",
        ("edge",),
        form="`zf_xiaoxiao` (a woman's) or `zm_yunxi` (a man's)",
    )

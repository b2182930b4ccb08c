"""The settings of models and engines."""

from pathlib import Path

from pydantic import BaseModel, Field, SecretStr

from fleet.settings.fields import named


class Models(BaseModel):
    """Chat model, recognition and voices. Without a base URL the offline set is used, and no key is needed."""

    llm_base_url: str | None = named(
        "LLM_BASE_URL", None, "OpenAI-compatible chat endpoint, …/v1. Default: the demo model."
    )
    llm_model: str = named(
        "LLM_MODEL", "fleet-demo", "Chat model's name. Where only LLM_BASE_URL is set: the one that the endpoint lists."
    )
    llm_api_key: SecretStr | None = named("LLM_API_KEY", None, "Chat model's key.")
    llm_temperature: float | None = named(
        "LLM_TEMPERATURE", None, "Sampling temperature. Default: the endpoint's own; 0.7 in the gateway."
    )
    llm_max_tokens: int | None = named(
        "LLM_MAX_TOKENS", None, "Longest answer in tokens. Default: the endpoint's own; 2048 in the gateway."
    )
    llm_timeout: float | None = named(
        "LLM_TIMEOUT", None, "Seconds to wait for the model's next token. Default: 8; 120 in the gateway."
    )
    llm_fallback_base_url: str | None = named(
        "LLM_FALLBACK_BASE_URL", None, "Second chat endpoint, asked when the first fails before its first word."
    )
    llm_fallback_model: str | None = named(
        "LLM_FALLBACK_MODEL", None, "Its model's name. Default: the one that it lists."
    )
    llm_fallback_api_key: SecretStr | None = named("LLM_FALLBACK_API_KEY", None, "Its key.")
    asr_base_url: str | None = named("ASR_BASE_URL", None, "OpenAI-compatible transcription endpoint, …/v1.")
    asr_model: str = named("ASR_MODEL", "whisper-1", "Transcription model's name.")
    asr_api_key: SecretStr | None = named("ASR_API_KEY", None, "Transcription endpoint's key.")
    asr_language: str | None = named("ASR_LANGUAGE", None, "Language sent to the endpoint; none without it.")
    asr_sample_rate: int = named("ASR_SAMPLE_RATE", 16000, "Sample rate in Hz of the WAV that is sent.")
    asr_timeout: float = named("ASR_TIMEOUT", 5.0, "Seconds to wait for a transcript.")
    tts_base_url: str | None = named("TTS_BASE_URL", None, "OpenAI-compatible speech endpoint, …/v1.")
    tts_model: str = named("TTS_MODEL", "tts-1", "Speech model's name.")
    tts_voice: str = named("TTS_VOICE", "alloy", "Speech model's voice.")
    tts_api_key: SecretStr | None = named("TTS_API_KEY", None, "Speech endpoint's key.")
    tts_language: str | None = named("TTS_LANGUAGE", None, "Language sent to the endpoint; none without it.")
    tts_sample_rate: int = named("TTS_SAMPLE_RATE", 24000, "Sample rate in Hz of the PCM that the endpoint returns.")
    tts_timeout: float = named("TTS_TIMEOUT", 5.0, "Seconds to wait for the first and each next piece of audio.")
    vision_base_url: str | None = named(
        "VISION_BASE_URL", None, "OpenAI-compatible endpoint for photos, …/v1. Default: that of the chat model."
    )
    vision_model: str | None = named("VISION_MODEL", None, "Model for photos. Default: the chat model.")
    vision_api_key: SecretStr | None = named("VISION_API_KEY", None, "Its key. Default: LLM_API_KEY with its endpoint.")
    vision_timeout: float = named("VISION_TIMEOUT", 20.0, "Seconds to wait for what it says; cameras wait 30.")
    model_dir: Path | None = Field(None, description="Folder with model files that replace those of the offline set.")
    zh_voice: str = Field("zf_xiaoxiao", description="Chinese voice of the offline set: zf_xiaoxiao or zm_yunxi.")

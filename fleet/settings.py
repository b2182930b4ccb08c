"""All settings, and the only reader of the environment.

Each setting is a `FLEET_…` variable; those of the models keep the names that their users know (`LLM_BASE_URL`). A TOML
file named by `FLEET_CONFIG` may hold the same names in lower case; the environment wins over it. A `FLEET_…` variable
that is no setting is an error, so that a typing mistake does not pass unseen.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from fleet.errors import ConfigError
from fleet.log import LogFormat
from fleet.tls import Tls

Policy = Literal["open", "code", "closed"]
"""Which devices are served."""

PREFIX = "FLEET_"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - devices reach these ports from outside


def _canonical(mac: str) -> str:
    """Return a MAC as devices are named everywhere: lower case, with colons."""
    digits = re.sub(r"[:\-._\s]", "", mac).lower()
    if not re.fullmatch("[0-9a-f]{12}", digits):
        raise ValueError(f"{mac.strip()!r} is no MAC")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


def _named(variable: str, default: Any, description: str) -> Any:
    """Return a field whose variable has no prefix, because its users know it by this name."""
    return Field(default, validation_alias=AliasChoices(variable, variable.lower()), description=description)


class Places(BaseModel):
    """Where things are."""

    mqtt_url: str | None = Field(
        None, description="Broker for the workers, mqtt://host:port or mqtts://. Without it `fleet up` starts its own."
    )
    redis_url: str | None = Field(
        None, description="Redis or Valkey, redis://host:port/0. Without it `fleet up` starts its own."
    )
    public_host: str | None = Field(
        None, description="Name or IPv4 address by which devices reach this server. Default: as they reached bootstrap."
    )
    mqtt_host: str = Field(EVERYWHERE, description="Address on which the front or the embedded broker listens.")
    mqtt_port: int = Field(
        1883, ge=0, le=65535, description="MQTT port of the front, for devices. Not 8883: firmware uses TLS there."
    )
    mqtt_public: str | None = Field(
        None, description="host:port of the broker that devices are told. Default: the public host and FLEET_MQTT_PORT."
    )
    udp_host: str = Field(EVERYWHERE, description="Address on which an edge listens for audio.")
    udp_port: int = Field(8884, ge=0, le=65535, description="UDP port of the audio.")
    udp_public: str | None = Field(
        None, description="host:port by which devices reach this edge. `fleet edge` needs it; `fleet up` does not."
    )
    http_host: str = Field(EVERYWHERE, description="Address on which the api listens.")
    http_port: int = Field(8000, ge=0, le=65535, description="HTTP port of the api: bootstrap and health.")
    http_public: str | None = Field(
        None,
        description="http(s)://host[:port] by which devices reach the api. Default: as they reached bootstrap; for the "
        "camera http, FLEET_PUBLIC_HOST and FLEET_HTTP_PORT.",
    )
    data_dir: Path = Field(
        Path.home() / ".local" / "share" / "fleet",
        description="Where `fleet up` keeps its keys and the embedded Redis.",
    )

    @field_validator("http_public")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w./-]*)?", value):
            raise ValueError("must be http://host[:port] or https://host[:port]")
        return value.rstrip("/") if value else value


class Identity(BaseModel):
    """Who may connect."""

    keys: SecretStr | None = Field(
        None,
        description="Keys that passwords derive from, `id:key,…`, the newest first. `fleet up` makes one and keeps it.",
    )
    keys_file: Path | None = Field(
        None, description="File with the keys in place of FLEET_KEYS; every process follows its changes."
    )
    activation: Policy = Field(
        "open",
        description="Which devices are served: `open` (every one), `code` (`fleet devices bind CODE`), `closed` (those "
        "bound before, and those of FLEET_SERIALS_FILE).",
    )
    serials_file: Path | None = Field(
        None, description="Serial numbers with burnt-in keys, a line `SERIAL KEY [MAC]` for each device."
    )
    revocations_file: Path | None = Field(
        None, description="File of revoked MACs that the api writes for the Mosquitto plugin."
    )
    firmware_dir: Path | None = Field(
        None,
        description="Folder with firmware that devices are offered: BOARD/VERSION.bin and BOARD/VERSION.bin.sha256.",
    )
    keepalive: int = Field(30, ge=10, le=240, description="MQTT keep-alive in seconds that devices are told.")
    refused_devices: str = Field(
        "", description="MACs, separated by commas, of devices whose hello is refused with an alert."
    )
    timezone_offset: int = Field(0, ge=-840, le=840, description="Minutes east of UTC that devices are told.")

    @field_validator("refused_devices")
    @classmethod
    def _are_macs(cls, value: str) -> str:
        return ",".join(_canonical(mac) for mac in value.split(",") if mac.strip())


class Rates(BaseModel):
    """How often something may be done, `PER_SECOND/BURST`: so often for long, and so often at once."""

    rate_address: str = Field(
        "500/5000",
        description="HTTP requests of one address, for bootstrap, activation, photos and firmware each. A whole site "
        "may have one address.",
    )
    rate_device: str = Field("20/100", description="Bootstrap and activation requests of one device from one address.")
    rate_photos: str = Field("0.2/10", description="Photos of one device.")
    rate_hellos: str = Field("1/20", description="Hellos of one device.")
    rate_tools: str = Field("5/50", description="Tool calls to one device.")
    trusted_proxies: str = Field(
        "127.0.0.1,::1",
        description="Addresses or networks, separated by commas, whose X-Forwarded-For and -Proto are believed.",
    )

    @field_validator("rate_address", "rate_device", "rate_photos", "rate_hellos", "rate_tools")
    @classmethod
    def _is_rate(cls, value: str) -> str:
        if not re.fullmatch(r"(?=.*[1-9].*/)\d{1,6}(\.\d{1,6})?/0*[1-9]\d{0,6}", value):
            raise ValueError("must be PER_SECOND/BURST, such as 0.5/10, both above 0")
        return value


class Sharding(BaseModel):
    """How work is spread."""

    shards: int = Field(16, description="Number of shards, a divisor of 256; equal for all processes.")
    lease_seconds: float = Field(6.0, gt=0, description="A shard's lease ends this long after its last renewal.")
    drain_seconds: float = Field(
        10.0, ge=0, description="How long a worker or an edge that is told to end waits for its turns; not `fleet up`."
    )
    edge_sessions: int = Field(20_000, ge=1, description="Most sessions of an edge; a full one is given no more.")

    @field_validator("shards")
    @classmethod
    def _divides(cls, value: int) -> int:
        if value < 1 or 256 % value:
            raise ValueError("must be a divisor of 256")
        return value


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


class Models(BaseModel):
    """Chat model, recognition and voices. Without a base URL the offline set is used, and no key is needed."""

    llm_base_url: str | None = _named(
        "LLM_BASE_URL", None, "OpenAI-compatible chat endpoint, …/v1. Default: the demo model."
    )
    llm_model: str = _named("LLM_MODEL", "fleet-demo", "Chat model's name.")
    llm_api_key: SecretStr | None = _named("LLM_API_KEY", None, "Chat model's key.")
    llm_temperature: float | None = _named(
        "LLM_TEMPERATURE", None, "Sampling temperature; the endpoint's own without it."
    )
    llm_max_tokens: int | None = _named(
        "LLM_MAX_TOKENS", None, "Longest answer in tokens; the endpoint's own without it."
    )
    llm_timeout: float = _named("LLM_TIMEOUT", 8.0, "Seconds to wait for the model's next token.")
    asr_base_url: str | None = _named("ASR_BASE_URL", None, "OpenAI-compatible transcription endpoint, …/v1.")
    asr_model: str = _named("ASR_MODEL", "whisper-1", "Transcription model's name.")
    asr_api_key: SecretStr | None = _named("ASR_API_KEY", None, "Transcription endpoint's key.")
    asr_language: str | None = _named("ASR_LANGUAGE", None, "Language sent to the endpoint; none without it.")
    asr_sample_rate: int = _named("ASR_SAMPLE_RATE", 16000, "Sample rate in Hz of the WAV that is sent.")
    asr_timeout: float = _named("ASR_TIMEOUT", 5.0, "Seconds to wait for a transcript.")
    tts_base_url: str | None = _named("TTS_BASE_URL", None, "OpenAI-compatible speech endpoint, …/v1.")
    tts_model: str = _named("TTS_MODEL", "tts-1", "Speech model's name.")
    tts_voice: str = _named("TTS_VOICE", "alloy", "Speech model's voice.")
    tts_api_key: SecretStr | None = _named("TTS_API_KEY", None, "Speech endpoint's key.")
    tts_language: str | None = _named("TTS_LANGUAGE", None, "Language sent to the endpoint; none without it.")
    tts_sample_rate: int = _named("TTS_SAMPLE_RATE", 24000, "Sample rate in Hz of the PCM that the endpoint returns.")
    tts_timeout: float = _named("TTS_TIMEOUT", 5.0, "Seconds to wait for the first and each next piece of audio.")
    vision_base_url: str | None = _named(
        "VISION_BASE_URL", None, "OpenAI-compatible endpoint for photos, …/v1. Default: that of the chat model."
    )
    vision_model: str | None = _named("VISION_MODEL", None, "Model for photos. Default: the chat model.")
    vision_api_key: SecretStr | None = _named(
        "VISION_API_KEY", None, "Its key. Default: LLM_API_KEY with its endpoint."
    )
    vision_timeout: float = _named("VISION_TIMEOUT", 20.0, "Seconds to wait for what it says; cameras wait 30.")
    model_dir: Path | None = Field(None, description="Folder with model files that replace those of the offline set.")
    zh_voice: str = Field("zf_xiaoxiao", description="Chinese voice of the offline set: zf_xiaoxiao or zm_yunxi.")


class Logging(BaseModel):
    """What is written down."""

    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level written.")
    log_format: LogFormat = Field("console", description="`json` or `console`.")
    log_pii: bool = Field(False, description="Also log what people say and what models are told.")


class Settings(Places, Tls, Identity, Rates, Sharding, Conversation, Models, Logging, BaseSettings):
    """Every setting of every role."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", populate_by_name=True, validate_default=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = os.environ.get(f"{PREFIX}CONFIG")
        toml = (TomlConfigSettingsSource(settings_cls, toml_file=file),) if file else ()
        return (init_settings, env_settings, *toml)


def load(**overrides: Any) -> Settings:
    """Return the settings from the environment and the TOML file; `overrides` that are None are left out.

    Raises:
        ConfigError: A value is wrong, a `FLEET_…` variable is unknown, or the file cannot be read.
    """
    _refuse_unknown_variables()
    file = os.environ.get(f"{PREFIX}CONFIG")
    if file and not Path(file).is_file():
        raise ConfigError(f"FLEET_CONFIG names {file}, which is no file")
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(fault["loc"], fault["msg"]) for fault in error.errors())) from error
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from error


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    alias = Settings.model_fields[name].validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else f"{PREFIX}{name.upper()}"


def _explain(place: Sequence[int | str], message: str) -> str:
    if not place:
        return message.removeprefix("Value error, ")
    name = str(place[0])
    if name not in Settings.model_fields:
        return f"unknown setting {name}"
    return f"{variable(name)}: {message.removeprefix('Value error, ')}"


def _refuse_unknown_variables() -> None:
    known = {variable(name) for name in Settings.model_fields} | {f"{PREFIX}CONFIG"}
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)
    if unknown:
        raise ConfigError(f"unknown setting {', '.join(unknown)}; `fleet settings` lists all")

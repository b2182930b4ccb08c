"""The settings that control reads."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """The settings that control reads."""

    operator_tokens_file: Path | None
    data_dir: Path
    rate_control: str
    secret_keys: SecretStr | None
    event_days: int
    conversation_days: int
    audit_days: int
    job_days: int
    state_poll_hours: float
    announcements_daily: int
    renewal_days: float
    timezone: str
    talk_url: str | None
    cloud_port: int
    wss_port: int
    tls_cert: Path | None
    firmware_dir: Path | None
    http_public: str | None
    public_host: str | None
    http_host: str
    http_port: int
    https_port: int
    tts_model: str
    tts_voice: str
    tts_sample_rate: int

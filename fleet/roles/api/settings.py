"""The settings that the api reads."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from fleet.ground.settings.identity import Policy


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """The settings that the api reads."""

    operator_tokens_file: Path | None
    rate_input: str
    rate_address: str
    rate_device: str
    rate_photos: str
    broker_token: SecretStr | None
    activation: Policy
    renewal_days: float
    serials_file: Path | None
    keepalive: int
    timezone: str
    tls_cert: Path | None
    public_host: str | None
    mqtt_port: int
    mqtt_public: str | None
    http_public: str | None
    data_dir: Path
    firmware_dir: Path | None
    firmware_url: str | None

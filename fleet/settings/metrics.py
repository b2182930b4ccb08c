"""The settings of metrics, health and traces."""

from pydantic import AliasChoices, BaseModel, Field, field_validator

from fleet.settings.fields import EVERYWHERE

_OFF = frozenset({"", "none", "off"})


class Metering(BaseModel):
    """What tells how a process is doing."""

    metrics_host: str = Field(EVERYWHERE, description="Address on which metrics and health are served.")
    metrics_port: int = Field(
        9464,
        ge=0,
        le=65535,
        description="Port of /metrics, /healthz and /readyz of every role; 0 or `none` for no such port. Where it is "
        "taken and was not set, a process runs without.",
    )
    otlp_endpoint: str | None = Field(
        None,
        validation_alias=AliasChoices("FLEET_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", "otlp_endpoint"),
        description="Collector of traces, http(s)://host:4318 (OTLP over HTTP); also OTEL_EXPORTER_OTLP_ENDPOINT. "
        "Default: no traces.",
    )

    @field_validator("metrics_port", mode="before")
    @classmethod
    def _may_be_off(cls, value: object) -> object:
        return 0 if value is None or (isinstance(value, str) and value.strip().lower() in _OFF) else value

    @field_validator("otlp_endpoint")
    @classmethod
    def _is_collector(cls, value: str | None) -> str | None:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must be http://host:port or https://host:port")
        return value.rstrip("/") if value else None

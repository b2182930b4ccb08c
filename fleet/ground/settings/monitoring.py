"""The settings of metrics, health and traces."""

from pydantic import BaseModel, field_validator

from fleet.ground.settings.fields import ALL_ROLES, ANY_ADDRESS, setting

_OFF = frozenset({"", "none", "off"})


class MonitoringGroup(BaseModel):
    """Metrics, health checks and traces of a process."""

    metrics_host: str = setting(
        ANY_ADDRESS,
        "Address of the port for metrics and health, which need no password. `fleet up` uses 127.0.0.1 unless this "
        "is set.",
        ALL_ROLES,
        syntax="address of this machine",
    )
    metrics_port: int = setting(
        9464,
        "Port of /metrics, /healthz and /readyz; 0 or `none` switches them off. Each role on a machine needs its own "
        "port. If the port is taken, a process runs without metrics if this is not set, and does not start if it is.",
        ALL_ROLES,
        syntax="port, or `none`",
        ge=0,
        le=65535,
    )
    otlp_endpoint: str | None = setting(
        None,
        "Collector of traces (OTLP over HTTP). Needs the packages of the extra `server`.",
        ALL_ROLES,
        variable="FLEET_OTLP_ENDPOINT",
        also="OTEL_EXPORTER_OTLP_ENDPOINT",
        syntax="http(s)://host:4318",
        unset="no traces",
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

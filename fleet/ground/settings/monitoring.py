"""The settings of metrics, health and traces."""

from pydantic import field_validator

from fleet.ground.settings.fields import ALL_ROLES, ANY_ADDRESS, SettingGroup, setting

_OFF = frozenset({"", "none", "off"})


class MonitoringGroup(SettingGroup):
    """Metrics, health checks and traces of a process."""

    title = "Metrics, health, traces"

    metrics_host: str = setting(ANY_ADDRESS, ALL_ROLES, syntax="address of this machine")
    """Address of the port for metrics and health, which need no password. `fleet up` uses 127.0.0.1 unless this is
    set."""
    metrics_port: int = setting(9464, ALL_ROLES, syntax="port, or `none`", ge=0, le=65535)
    """Port of /metrics, /healthz and /readyz; 0 or `none` switches them off. Each role on a machine needs its own port.
    If the port is taken, a process runs without metrics if this is not set, and does not start if it is."""
    otlp_endpoint: str | None = setting(
        None,
        ALL_ROLES,
        variable="FLEET_OTLP_ENDPOINT",
        also="OTEL_EXPORTER_OTLP_ENDPOINT",
        syntax="http(s)://host:4318",
        unset="no traces",
    )
    """Collector of traces (OTLP over HTTP). Needs the packages of the extra `server`."""

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

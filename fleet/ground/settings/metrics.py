"""The settings of metrics, health and traces."""

from pydantic import BaseModel, field_validator

from fleet.ground.settings.fields import EVERY, EVERYWHERE, setting

_OFF = frozenset({"", "none", "off"})


class Metering(BaseModel):
    """What tells how a process is doing."""

    metrics_host: str = setting(
        EVERYWHERE,
        "Address on which metrics and health are served. They ask for no password. `fleet up` serves them on 127.0.0.1 "
        "unless this is set.",
        EVERY,
        form="address of this machine",
    )
    metrics_port: int = setting(
        9464,
        "Port of /metrics, /healthz and /readyz; with 0 or `none` there are none. Roles on one machine need one each: "
        "where the port is taken a process runs without if nobody set it, and does not start if somebody did.",
        EVERY,
        form="port, or `none`",
        ge=0,
        le=65535,
    )
    otlp_endpoint: str | None = setting(
        None,
        "Collector of traces (OTLP over HTTP). Needs the packages of the extra `server`.",
        EVERY,
        variable="FLEET_OTLP_ENDPOINT",
        also="OTEL_EXPORTER_OTLP_ENDPOINT",
        form="http(s)://host:4318",
        without="no traces",
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

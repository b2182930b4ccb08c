"""The settings of control: registry, agents and the REST API."""

from pathlib import Path

from pydantic import field_validator, model_validator

from fleet.ground.settings.fields import SettingGroup, setting
from fleet.ground.settings.rates import RATE, checked_rate
from fleet.ground.settings.tls import LOOPBACK, is_loopback


class ControlGroup(SettingGroup):
    """The REST API for operators, and its database."""

    title = "Control"

    control_host: str = setting(LOOPBACK, ("control",), syntax="address of this machine")
    """Address on which control listens. On another address than loopback it serves HTTPS: with FLEET_CONTROL_CERT, else
    FLEET_TLS_CERT, else a certificate that it makes itself in FLEET_DATA_DIR."""
    control_port: int = setting(8003, ("control",), syntax="port", ge=0, le=65535)
    """Port of control."""
    control_cert: Path | None = setting(None, ("control",), syntax="PEM file", unset="see FLEET_CONTROL_HOST")
    """Certificate of control, with the intermediate certificates up to its authority; it switches on HTTPS on loopback
    too."""
    control_key: Path | None = setting(None, ("control",), syntax="PEM file", masked="file")
    """The certificate's key, without a password."""
    control_proxy: bool = setting(False, ("control",))
    """Declare that a proxy in front of control ends TLS: control then serves plain HTTP on every address. Set
    FLEET_TRUSTED_PROXIES to the proxy's address."""
    database_url: str | None = setting(
        None,
        ("control",),
        syntax="sqlite:///FILE or postgresql://user:password@host/name",
        unset="SQLite, `control.db` in FLEET_DATA_DIR",
        equal=True,
        masked="part",
    )
    """Database of control. SQLite serves one process of control, PostgreSQL any number; it needs the
    extra `postgres`."""
    event_days: int = setting(30, ("control",), unit="days", ge=1, le=3650)
    """How long control keeps events, and the times when devices connected and disconnected."""
    conversation_days: int = setting(30, ("control",), unit="days", ge=1, le=3650)
    """How long control keeps what was said, where FLEET_CONVERSATIONS is `on`."""
    audit_days: int = setting(365, ("control",), unit="days", ge=0, le=36_500)
    """How long the audit log is kept; 0 keeps it for ever. The database keeps the last 30 days in any case."""
    job_days: int = setting(90, ("control",), unit="days", ge=1, le=3650)
    """How long control keeps jobs that are over, and what happened on each device; at most 1,000 jobs of a tenant."""
    state_poll_hours: float = setting(6.0, ("control",), unit="hours", ge=0, le=720)
    """How often a device with a desired state is asked what it reports, unless something happens sooner; 0 asks it only
    when it connects, or when something was set."""
    announcements_daily: int = setting(1_000, ("control",), ge=0, le=1_000_000)
    """Announcements that a tenant may make on one day in UTC."""
    rate_control: str = setting("50/200", ("control",), syntax=RATE)
    """Requests of one token to one process of control."""

    @field_validator("control_cert", "control_key")
    @classmethod
    def _is_present(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError(f"{value} is no file")
        return value

    @field_validator("rate_control")
    @classmethod
    def _is_token_rate(cls, value: str) -> str:
        return checked_rate(value)

    @model_validator(mode="after")
    def _certificate_has_key(self) -> "ControlGroup":
        if (self.control_cert is None) != (self.control_key is None):
            raise ValueError("FLEET_CONTROL_CERT and FLEET_CONTROL_KEY go together")
        if self.control_proxy and self.control_cert is not None:
            raise ValueError("FLEET_CONTROL_PROXY says that a proxy ends TLS, and FLEET_CONTROL_CERT that control does")
        return self

    @property
    def control_tls(self) -> bool:
        """Whether control serves HTTPS."""
        if self.control_cert is not None:
            return True
        return not self.control_proxy and not is_loopback(self.control_host)

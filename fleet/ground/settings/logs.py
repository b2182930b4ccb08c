"""The settings of the log."""

from typing import Literal

from pydantic import field_validator

from fleet.ground.log import LogFormat
from fleet.ground.settings.fields import ALL_ROLES, SettingGroup, setting
from fleet.ground.settings.rates import RATE, checked_rate


class LoggingGroup(SettingGroup):
    """The log on standard error. For the gateway see also CLOUD_LOG_LEVEL and CLOUD_LOG_FORMAT."""

    title = "Log"

    log_level: Literal["debug", "info", "warning", "error"] = setting("info", ALL_ROLES)
    """Lowest level of the log. `fleet devices debug` writes all lines of one device without a restart."""
    log_format: LogFormat = setting("console", ALL_ROLES)
    """`console` is readable text, `json` is one JSON object a line."""
    log_rate: str = setting("2/200", ALL_ROLES, syntax=f"{RATE} or none")
    """Most log lines of one message; one device or address may cause a tenth of them. This keeps clients from filling
    the disk. One line a minute counts the lines that were left out. `none`, and the level debug, write all lines."""
    log_pii: bool = setting(False, ALL_ROLES)
    """Also log speech and prompts, and add them to traces. They are personal data."""

    @field_validator("log_rate")
    @classmethod
    def _is_rate_or_none(cls, value: str) -> str:
        return value if value == "none" else checked_rate(value)


def log_budget(rate: str, level: str) -> tuple[float, int] | None:
    """Return lines of one message a second, and at once; None for no limit."""
    if rate == "none" or level == "debug":
        return None
    per_second, _, burst = rate.partition("/")
    return float(per_second), int(burst)

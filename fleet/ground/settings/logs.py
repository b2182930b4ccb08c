"""The settings of the log."""

from typing import Literal

from pydantic import BaseModel, field_validator

from fleet.ground.log import LogFormat
from fleet.ground.settings.fields import EVERY, setting
from fleet.ground.settings.rates import RATE, checked_rate


class Logging(BaseModel):
    """What is written down, to standard error. The gateway has CLOUD_LOG_LEVEL and CLOUD_LOG_FORMAT beside them."""

    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info",
        "Lowest level that is written. `fleet devices debug` writes all lines of one device without a restart.",
        EVERY,
    )
    log_format: LogFormat = setting(
        "console", "`console` is for people on a terminal, `json` is an object a line for programs.", EVERY
    )
    log_rate: str = setting(
        "2/200",
        "Lines of one message that are written, a tenth of them of one device or address, so that nobody outside fills "
        "the disk; a line a minute tells how many were left out. `none` writes all; so does the level debug.",
        EVERY,
        form=f"{RATE} or none",
    )
    log_pii: bool = setting(
        False,
        "Also log what people say and what models are told, and put it into traces. It is personal data.",
        EVERY,
    )

    @field_validator("log_rate")
    @classmethod
    def _is_rate_or_none(cls, value: str) -> str:
        return value if value == "none" else checked_rate(value)


def log_budget(rate: str, level: str) -> tuple[float, int] | None:
    """Return how many lines of one message are written a second, and at once; None for all."""
    if rate == "none" or level == "debug":
        return None
    per_second, _, burst = rate.partition("/")
    return float(per_second), int(burst)

"""The settings of the log."""

from typing import Literal

from pydantic import BaseModel

from fleet.log import LogFormat
from fleet.settings.fields import EVERY, setting


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
    log_pii: bool = setting(
        False,
        "Also log what people say and what models are told, and put it into traces. It is personal data.",
        EVERY,
    )

"""The settings of the log."""

from typing import Literal

from pydantic import BaseModel, Field

from fleet.log import LogFormat


class Logging(BaseModel):
    """What is written down."""

    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level written.")
    log_format: LogFormat = Field("console", description="`json` or `console`.")
    log_pii: bool = Field(False, description="Also log what people say and what models are told.")

"""The settings of operators: people and programs that act on devices through the api."""

import re
from pathlib import Path

from pydantic import BaseModel, Field, field_validator


class Operating(BaseModel):
    """Who may act, and how often."""

    operator_tokens_file: Path | None = Field(
        None,
        description="File with the hashes of operators' bearer tokens; `fleet tokens new` writes it, and every api "
        "follows its changes. Default: `operator-tokens` in FLEET_DATA_DIR.",
    )
    rate_input: str = Field("1/20", description="Texts that operators enter for one device.")

    @field_validator("rate_input")
    @classmethod
    def _is_rate(cls, value: str) -> str:
        if not re.fullmatch(r"(?=.*[1-9].*/)\d{1,6}(\.\d{1,6})?/0*[1-9]\d{0,6}", value):
            raise ValueError("must be PER_SECOND/BURST, such as 0.5/10, both above 0")
        return value

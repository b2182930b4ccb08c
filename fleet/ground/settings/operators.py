"""The settings of operators: people and programs that act on devices through the api."""

from pathlib import Path

from pydantic import BaseModel, field_validator

from fleet.ground.settings.fields import setting
from fleet.ground.settings.rates import RATE, checked_rate


class Operating(BaseModel):
    """Which people and programs may act on devices, or use the gateway, and how often."""

    operator_tokens_file: Path | None = setting(
        None,
        "File with the hashes of operators' bearer tokens; `fleet tokens new` writes it, and its changes count at "
        "once. The gateway reads it where FLEET_GATEWAY_TOKENS is true.",
        ("api", "gateway"),
        same=True,
        form="file",
        without="`operator-tokens` in FLEET_DATA_DIR",
    )
    rate_input: str = setting(
        "1/20", "Texts that operators enter for one device, and that its own user types.", ("api", "edge"), form=RATE
    )

    @field_validator("rate_input")
    @classmethod
    def _is_rate(cls, value: str) -> str:
        return checked_rate(value)

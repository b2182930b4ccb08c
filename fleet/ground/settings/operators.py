"""The settings of operators: people and programs that control devices through the api."""

from pathlib import Path

from pydantic import BaseModel, field_validator

from fleet.ground.settings.fields import setting
from fleet.ground.settings.rates import RATE, checked_rate


class OperatorGroup(BaseModel):
    """Tokens and rates of people and programs that control devices or use the gateway."""

    operator_tokens_file: Path | None = setting(
        None,
        "File with the hashes of operators' bearer tokens. `fleet tokens new` writes it; changes take effect at once. "
        "The gateway reads it if FLEET_GATEWAY_TOKENS is true.",
        ("api", "gateway"),
        equal=True,
        syntax="file",
        unset="`operator-tokens` in FLEET_DATA_DIR",
    )
    rate_input: str = setting(
        "1/20", "Texts for one device, from operators and from its own user.", ("api", "edge"), syntax=RATE
    )

    @field_validator("rate_input")
    @classmethod
    def _is_rate(cls, value: str) -> str:
        return checked_rate(value)

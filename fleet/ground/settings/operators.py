"""The settings of operators: people and programs that control devices through the api."""

from pathlib import Path

from pydantic import field_validator

from fleet.ground.settings.fields import SettingGroup, setting
from fleet.ground.settings.rates import RATE, checked_rate


class OperatorGroup(SettingGroup):
    """Tokens and rates of people and programs that control devices or use the gateway."""

    title = "Operators"

    operator_tokens_file: Path | None = setting(
        None, ("api", "gateway", "control"), equal=True, syntax="file", unset="`operator-tokens` in FLEET_DATA_DIR"
    )
    """File with the hashes of operators' bearer tokens. `fleet tokens new` writes it; changes take effect at once. The
    gateway reads it if FLEET_GATEWAY_TOKENS is true."""
    rate_input: str = setting("1/20", ("api", "edge"), syntax=RATE)
    """Texts for one device from operators; texts that its own user types; utterances of its user. Each has a limit of
    its own."""

    @field_validator("rate_input")
    @classmethod
    def _is_operator_rate(cls, value: str) -> str:
        return checked_rate(value)

"""Which variables fleet understands, for whatever sets them.

`python -m tests.support.deployed_settings` writes deploy/settings, through which Compose hands settings on to roles.
"""

import functools
from pathlib import Path

import yaml

from fleet.ground.settings import Settings
from fleet.ground.settings.reference import groups
from fleet.ground.settings.wording import variables

PREFIXES = ("FLEET_", "LLM_", "ASR_", "TTS_", "VISION_", "CLOUD_", "MCP_", "CLIENT_")
DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSED = ("worker", "edge", "gateway", "api", "control")
"""The roles that are services of deploy/compose.yaml."""
_HEAD = """\
# The settings that {role} reads, written by `python -m tests.support.deployed_settings`: do not edit.
# Compose takes the value of each from .env, and leaves out those that are not there.
"""


def unknown(names: set[str]) -> set[str]:
    """Return those that look like settings, and are none."""
    known = {one for name, field in Settings.model_fields.items() for one in variables(name, field)}
    return {name for name in names if name.startswith(PREFIXES)} - known


def read_by(role: str) -> list[str]:
    """Return the variables of the settings that a role reads."""
    entries = [entry for group in groups() for entry in group.entries if role in entry.roles]
    return [one for entry in entries for one in (entry.variable, *entry.also.split(", ")) if one]


def fixed(role: str) -> set[str]:
    """Return the variables that deploy/compose.yaml sets for a role, whatever .env says of them."""
    return {name for name, value in _composed(role).items() if f"${{{name}" not in str(value)}


def handed_on(role: str) -> str:
    """Return deploy/settings/ROLE.env: what `environment` of the service does not say has no value here."""
    names = [name for name in read_by(role) if name not in _composed(role)]
    return _HEAD.format(role=role) + "".join(f"{name}\n" for name in names)


@functools.cache
def _composed(role: str) -> dict[str, object]:
    """Return `environment` of a service, as it is written."""
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"][role]
    return dict(service["environment"])


if __name__ == "__main__":
    for role in COMPOSED:
        (DEPLOY / "settings" / f"{role}.env").write_text(handed_on(role), encoding="utf-8")

"""Which variables fleet understands, for whatever sets them."""

from fleet.ground.settings import Settings
from fleet.ground.settings.wording import variables

PREFIXES = ("FLEET_", "LLM_", "ASR_", "TTS_", "VISION_", "CLOUD_", "MCP_", "CLIENT_")


def unknown(names: set[str]) -> set[str]:
    """Return those that look like settings, and are none."""
    known = {one for name, field in Settings.model_fields.items() for one in variables(name, field)}
    return {name for name in names if name.startswith(PREFIXES)} - known

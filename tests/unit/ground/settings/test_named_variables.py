"""Documents and deployment files name only variables that exist."""

import re
from pathlib import Path

import pytest

from fleet.ground.settings import Settings
from fleet.ground.settings.wording import variables
from tests.support.every import for_every

ROOT = Path(__file__).parents[4]
PREFIXES = ("FLEET_", "CLOUD_", "LLM_", "ASR_", "TTS_", "VISION_", "MCP_", "CLIENT_")
OF_THE_DEPLOYMENT = {"FLEET_CONFIG", "FLEET_IMAGE", "FLEET_SPEECH_IMAGE"}
"""Named in docs/reference/settings.md, and those that only Compose reads."""
OTHER_WORDS = {"LLM_ERROR"}
"""Words of the protocols that look like variables."""
SETTINGS = {one for name, field in Settings.model_fields.items() for one in variables(name, field)}
KNOWN = SETTINGS | OF_THE_DEPLOYMENT | OTHER_WORDS
FILES = sorted(
    path
    for place in ("docs", "deploy", "mosquitto")
    for path in (ROOT / place).rglob("*")
    if path.is_file() and (path.suffix == ".md" or place == "deploy")
) + sorted(ROOT.glob("*.md"))
_WORD = re.compile(rf"\b(?:{'|'.join(PREFIXES)})[A-Z0-9_]*(?:…|\*)?")


def wrong(text: str) -> set[str]:
    """Return the words that look like variables and are none; `FLEET_RATE_…` stands for all that begin so."""
    found = set()
    for word in _WORD.findall(text):
        start = word.rstrip("…*")
        if word != start and any(known.startswith(start) for known in KNOWN):
            continue
        if start not in KNOWN and start not in PREFIXES:
            found.add(word)
    return found


@for_every("path", FILES)
def test_the_variables_that_it_names_exist(path: Path) -> None:
    assert wrong(path.read_text(encoding="utf-8", errors="replace")) == set()


def test_what_does_not_exist_is_found() -> None:
    assert wrong("set FLEET_SHARD=3, CLOUD_PROT and FLEET_NO_…") == {"FLEET_SHARD", "CLOUD_PROT", "FLEET_NO_…"}
    assert wrong("FLEET_SHARDS, FLEET_RATE_…, LLM_*, any FLEET_ one, OTEL_EXPORTER_OTLP_ENDPOINT") == set()


@pytest.mark.parametrize("word", sorted(OF_THE_DEPLOYMENT - {"FLEET_CONFIG"}))
def test_what_only_compose_reads_is_read_there(word: str) -> None:
    assert f"${{{word}:-" in (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")

"""What the reference says of settings is so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from fleet.adapters.llm.model_name import DOCUMENTED as DOCUMENTED_MODEL
from fleet.ground.settings import Settings, load, variable
from fleet.ground.settings.fields import ALL_ROLES
from fleet.ground.settings.reference import (
    GATEWAY_DOCUMENT,
    SettingEntry,
    groups,
    is_changed,
    roles_only_variables,
)
from fleet.ground.settings.wording import plain_type, shown
from fleet.run.gateway import log_settings, model_terms
from tests.support.every import for_every
from tests.support.setting_readers import readers

ENTRIES = {entry.name: entry for group in groups() for entry in group.entries}
OTHERWISE = {
    "log_level": set(ALL_ROLES),
    "log_rate": set(ALL_ROLES),
    "log_format": set(ALL_ROLES),
    "mqtt_url": {"worker", "edge", "gateway", "front"},
}
"""The command itself makes the log; the api opens a site without a broker."""


def test_every_setting_is_in_one_group() -> None:
    every = [entry.name for group in groups() for entry in group.entries]
    assert sorted(every) == sorted(Settings.model_fields)
    assert len({group.title for group in groups()}) == len(groups())


@for_every("entry", ENTRIES.values())
def test_everything_is_said(entry: SettingEntry) -> None:
    assert len(entry.meaning) > 8
    assert entry.meaning.endswith(".")
    assert entry.allowed
    assert entry.unset or entry.default
    assert not entry.unset.endswith(".")
    # Words about an unset setting stand in place of its default.
    assert not (entry.unset and entry.default) or f"`{entry.default}`" in entry.unset
    assert entry.variable == variable(entry.name)


@for_every("name", ENTRIES)
def test_the_roles_that_are_named_read_it(name: str) -> None:
    assert set(ENTRIES[name].roles) == OTHERWISE.get(name, readers()[name])


def test_secrets_are_marked() -> None:
    secret = {name for name, field in Settings.model_fields.items() if plain_type(field) is SecretStr}
    assert {name for name, entry in ENTRIES.items() if entry.masked == "value"} == secret
    assert ENTRIES["redis_url"].masked == "part"
    assert ENTRIES["tls_key"].masked == "file"


def test_what_must_be_equal_is_marked() -> None:
    assert ENTRIES["shards"].equal
    assert ENTRIES["keys"].equal
    assert not ENTRIES["udp_public"].equal


def test_what_up_leaves_out_is_named() -> None:
    assert "`FLEET_DRAIN_SECONDS`" in roles_only_variables()
    assert "FLEET_SHARDS" not in roles_only_variables()


@pytest.mark.requirement("GW-160")
def test_the_documents_variables_are_settings_with_its_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*GATEWAY_DOCUMENT, *(name for name in os.environ if name.startswith("FLEET_"))]:
        monkeypatch.delenv(name, raising=False)
    settings = load()
    told = {name: shown(getattr(settings, name.lower())).lower() for name in GATEWAY_DOCUMENT}
    terms, (level, form) = model_terms(settings), log_settings(settings)
    told |= {"CLOUD_LOG_LEVEL": level, "CLOUD_LOG_FORMAT": form, "LLM_API_KEY": "null"}
    told |= {"LLM_TEMPERATURE": f"{terms.temperature:g}"}
    told |= {"LLM_MAX_TOKENS": str(terms.max_tokens), "LLM_MODEL": DOCUMENTED_MODEL.lower()}
    # The one that is not: its document has an address in its authors' own network.
    told["LLM_BASE_URL"] = GATEWAY_DOCUMENT["LLM_BASE_URL"][1]
    assert told == {name: default.lower() for name, (_, default) in GATEWAY_DOCUMENT.items()}
    assert len(GATEWAY_DOCUMENT) == 22


def test_what_is_set_is_told_from_what_is_not() -> None:
    assert is_changed("shards", load(shards=32))
    assert not is_changed("shards", load(shards=16))


def test_a_home_is_the_readers_own(tmp_path: Path) -> None:
    code = "from fleet.ground.settings.reference import groups; print(groups()[0].entries[-1].default)"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=True, timeout=240)
    assert done.stdout == "~/.local/share/fleet\n"

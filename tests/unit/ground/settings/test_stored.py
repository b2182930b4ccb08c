from pathlib import Path

import pytest
from pydantic import SecretStr

from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.settings.stored import restore, store


def test_settings_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Settings(llm_base_url="http://h/v1", llm_api_key=SecretStr("k"), data_dir=Path("/d"), shards=8)
    monkeypatch.setenv("LLM_MODEL", "of another shell")
    back = restore(store(told))
    assert back == told and back.model_fields_set == told.model_fields_set
    assert back.llm_api_key == SecretStr("k") and back.data_dir == Path("/d")


@pytest.mark.parametrize("stored", [{}, {"chosen": []}, {**store(Settings()), "new_setting": 1}])
def test_settings_of_another_version_are_refused(stored: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="another version"):
        restore(stored)  # type: ignore[arg-type]  # JSON of any kind

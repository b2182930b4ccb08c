"""What commands read from people."""

from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError
from fleet.operations.inputs import checked, read_document, read_secret, with_fields
from fleet.wire.control.providers import ProviderChange


def test_fields_are_set_and_removed_in_a_copy() -> None:
    draft = {"prompt": "one", "voice": {"name": "onyx", "speed": 1.5}}
    changed = with_fields(draft, ["prompt=two words", "voice.speed=2", "chat.model=m"], ["voice.name"])
    assert changed == {"prompt": "two words", "voice": {"speed": 2}, "chat": {"model": "m"}}
    assert draft == {"prompt": "one", "voice": {"name": "onyx", "speed": 1.5}}
    for pairs in (["prompt"], ["=x"], ["prompt.name=x"]):
        with pytest.raises(ConfigError):
            with_fields(draft, pairs)


def test_a_document_is_an_object_in_json_or_toml(tmp_path: Path) -> None:
    for name, text in (("a.json", '{"a": {"b": 1}}'), ("a.toml", "[a]\nb = 1")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read_document(tmp_path / name) == {"a": {"b": 1}}
    for name, text in (("b.json", "[]"), ("c.json", "{"), ("d.toml", "=")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError):
            read_document(tmp_path / name)
    with pytest.raises(ConfigError):
        read_document(tmp_path / "missing.json")


def test_a_secret_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-x\n", encoding="utf-8")
    assert read_secret(file) == "sk-x"
    for text in ("", "a\nb", "a\x1bb"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError):
            read_secret(file)


def test_a_fault_names_the_field_and_not_the_value() -> None:
    with pytest.raises(ConfigError, match="key: ") as raised:
        checked(ProviderChange, {"key": "s" * 2_000})
    assert "ss" not in str(raised.value)

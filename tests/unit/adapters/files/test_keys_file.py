"""The keys that `fleet up` makes for itself."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet.adapters.files.keys_file import load_or_make_keys
from fleet.ground.errors import ConfigError
from fleet.wire.identity import CredentialKeys


def test_made_once_and_kept(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "data"
    text = load_or_make_keys(directory)
    mine = CredentialKeys(text).issue("device", "02:00:00:00:00:07")
    assert mine.username == "device.k1"
    assert load_or_make_keys(directory) == text
    assert [path.name for path in directory.iterdir()] == ["keys"]


def test_only_the_owner_may_read_them(tmp_path: Path) -> None:
    load_or_make_keys(tmp_path)
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o600


def test_no_two_are_alike(tmp_path: Path) -> None:
    assert load_or_make_keys(tmp_path / "a") != load_or_make_keys(tmp_path / "b")


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(load_or_make_keys, [tmp_path] * 32))
    assert len(set(texts)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["keys"]


def test_rotated_keys_of_the_operator_are_used_as_they_are(tmp_path: Path) -> None:
    text = "k2:a-key-for-tests-only-2\nk1:a-key-for-tests-only-1\n"
    (tmp_path / "keys").write_text(text)
    (tmp_path / "keys").chmod(0o600)
    assert load_or_make_keys(tmp_path) == text


@pytest.mark.parametrize("content", [b"", b"k1:short", b"\xff\xfe", b"no pair"])
def test_damaged_file_is_told_with_its_path_and_never_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keys").write_bytes(content)
    with pytest.raises(ConfigError, match=str(tmp_path / "keys")):
        load_or_make_keys(tmp_path)
    assert (tmp_path / "keys").read_bytes() == content


def test_directory_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="keys"):
        load_or_make_keys(tmp_path / "file")


def test_file_that_others_can_read_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_or_make_keys(tmp_path)
    (tmp_path / "keys").chmod(0o644)
    with caplog.at_level(logging.WARNING):
        load_or_make_keys(tmp_path)
    assert "keys can be read by others" in caplog.text

"""Files that devices download."""

import errno
import hashlib
from pathlib import Path

import pytest

from fleet.adapters.files import image_store as product
from fleet.adapters.files.image_store import ImageStore


def test_a_file_is_there_under_its_digest_once_it_is_kept(tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "new")
    with store.write() as writer:
        writer.add(b"one")
        writer.add(b" file")
        assert store.path(writer.sha256) is None
        writer.keep()
    name = hashlib.sha256(b"one file").hexdigest()
    found = store.path(name)
    assert found is not None and found.read_bytes() == b"one file"
    store.remove(name)
    assert store.path(name) is None and list((tmp_path / "new").iterdir()) == []


def test_what_is_not_kept_leaves_nothing(tmp_path: Path) -> None:
    with ImageStore(tmp_path).write() as writer:
        writer.add(b"half")
    assert list(tmp_path.iterdir()) == []


def test_no_other_name_leads_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(b"x")
    store = ImageStore(tmp_path / "images")
    for name in ("../secret", "secret", "", "A" * 64):
        assert store.path(name) is None
        store.remove(name)
    assert (tmp_path / "secret.bin").exists()


def test_a_file_that_is_not_what_its_name_says_is_none_until_it_is_right_again(tmp_path: Path) -> None:
    store, name = ImageStore(tmp_path), hashlib.sha256(b"one file").hexdigest()
    path = tmp_path / f"{name}.bin"
    for content, sound in ((b"one fi", False), (b"one file", True), (b"one fool", False), (b"one file", True)):
        copy = tmp_path / "copy"
        copy.write_bytes(content)
        copy.replace(path)
        assert (store.path(name) == path) is sound
        assert (store.path(name) == path) is sound, "it is not read again"


def test_a_file_may_not_take_the_space_that_is_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "RESERVE_BYTES", 2**62)
    with pytest.raises(OSError) as full, ImageStore(tmp_path).write() as writer:
        writer.add(b"more")
    assert full.value.errno == errno.ENOSPC and list(tmp_path.iterdir()) == []

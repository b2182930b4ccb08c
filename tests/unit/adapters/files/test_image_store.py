"""Files that devices download."""

import hashlib
from pathlib import Path

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

import stat
from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError
from fleet.operations.rotation import KeysFile, next_step
from fleet.wire.identity import CredentialKeys


@pytest.mark.parametrize(
    ("ids", "step"),
    [
        (("k1",), "accept"),
        (("k1", "k2"), "sign"),
        (("k2", "k1"), "reboot"),
        (("k10", "k9"), "reboot"),
        (("new", "old"), "reboot"),
    ],
)
def test_the_files_order_tells_where_a_rotation_goes_on(ids: tuple[str, ...], step: str) -> None:
    assert next_step(ids) == step


def test_a_third_key_is_refused() -> None:
    with pytest.raises(ConfigError):
        next_step(("k3", "k2", "k1"))


def test_the_file_keeps_its_mode_and_can_be_read_by_the_plugin(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("k1:a-key-of-this-test-only\n")
    path.chmod(0o640)
    file = KeysFile(path)
    file.write(["k2 another-key-of-this-test", *file.read().as_file().splitlines()])
    assert path.read_text() == "k2 another-key-of-this-test\nk1 a-key-of-this-test-only\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert CredentialKeys(path.read_text()).ids == ("k2", "k1")
    assert [one.name for one in tmp_path.iterdir()] == ["keys"]


def test_what_are_no_keys_is_never_written(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("k1:a-key-of-this-test-only\n")
    with pytest.raises(ConfigError):
        KeysFile(path).write(["k2 short"])
    assert KeysFile(path).read().ids == ("k1",)

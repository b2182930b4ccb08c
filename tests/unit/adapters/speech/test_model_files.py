import hashlib
import importlib
from pathlib import Path

import pytest

from fleet.adapters.speech.model_files import ModelFile, find_voice, list_voices, opened, require
from fleet.ground.errors import ConfigError

CONTENT = b"first half, second half"


def make(sha256: str = hashlib.sha256(CONTENT).hexdigest()) -> ModelFile:
    return ModelFile("thing.bin", sha256, (("wheel_one", "data/part1"), ("wheel_two", "part2")))


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two installed packages that fail when they are imported, each with a part."""
    for package, path, part in (("wheel_one", "data/part1", CONTENT[:11]), ("wheel_two", "part2", CONTENT[11:])):
        file = tmp_path / package / path
        file.parent.mkdir(parents=True)
        file.write_bytes(part)
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return tmp_path


@pytest.mark.usefixtures("wheels")
def test_parts_are_joined_in_order_without_importing_their_packages() -> None:
    with opened(make(), None) as path:
        assert path.read_bytes() == CONTENT


@pytest.mark.usefixtures("wheels")
def test_a_file_that_is_not_the_pinned_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"thing\.bin .*not the pinned file"), opened(make("0" * 64), None):
        pass


def test_a_missing_part_is_named_with_what_to_do(wheels: Path) -> None:
    (wheels / "wheel_two" / "part2").unlink()
    with pytest.raises(ConfigError) as caught, opened(make(), None):
        pass
    for word in ("thing.bin", "wheel-two", "pip install 'fleet-voice[speech]'", "FLEET_MODEL_DIR"):
        assert word in str(caught.value)


def test_a_missing_package_is_named() -> None:
    with pytest.raises(ConfigError, match="no-such-wheel"), opened(ModelFile("x", "", (("no_such_wheel", "x"),)), None):
        pass


@pytest.mark.usefixtures("wheels")
def test_a_file_in_the_model_folder_replaces_the_wheels(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    with opened(make(), folder) as path:
        assert path.read_bytes() == CONTENT
    (folder / "thing.bin").write_bytes(b"my own")
    with opened(make(), folder) as path:
        assert path.read_bytes() == b"my own"


def test_a_module_that_is_not_installed_is_named_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"no_such_engine.*pip install 'fleet-voice\[speech\]'"):
        require("no_such_engine")


def test_both_vendored_voices_are_found() -> None:
    assert find_voice("zf_xiaoxiao", None).is_file()
    assert find_voice("zm_yunxi", None).is_file()


@pytest.mark.parametrize("name", ["nobody", "", "../zf_xiaoxiao", "../voices/zf_xiaoxiao"])
def test_an_unknown_voice_is_refused_and_the_known_ones_are_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="zf_xiaoxiao, zm_yunxi"):
        find_voice(name, tmp_path)


def test_a_voice_in_the_model_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "zf_mine.f16.npy").write_bytes(b"x")
    assert find_voice("zf_mine", tmp_path) == tmp_path / "zf_mine.f16.npy"
    assert list_voices(tmp_path) == ("zf_mine", *list_voices(None)) == ("zf_mine", "zf_xiaoxiao", "zm_yunxi")

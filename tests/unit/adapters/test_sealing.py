import pytest

from fleet.adapters.sealing import Sealer, new_key
from fleet.ground.errors import ConfigError


def test_a_secret_is_readable_with_the_key_only_and_after_a_change_of_keys() -> None:
    old, new = new_key(), new_key()
    sealed = Sealer(old).seal("sk-1")
    assert "sk-1" not in sealed
    assert Sealer(f"{new}, {old}").unseal(sealed) == "sk-1"
    with pytest.raises(ConfigError, match="none of the keys"):
        Sealer(new).unseal(sealed)
    with pytest.raises(ConfigError, match="is missing"):
        Sealer().seal("sk-1")
    assert Sealer().seal("") == Sealer().unseal("") == ""


def test_a_wrong_key_is_not_shown() -> None:
    with pytest.raises(ConfigError, match="not 32 bytes") as caught:
        Sealer("hunter2")
    assert "hunter2" not in str(caught.value)

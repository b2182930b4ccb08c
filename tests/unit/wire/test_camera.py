import pytest

from fleet.wire.camera import LIFE_SECONDS, is_valid, issue
from fleet.wire.identity import CredentialKeys, Minima

MAC, OTHER = "aa:bb:cc:dd:ee:ff", "aa:bb:cc:dd:ee:00"
OLD = "k1:a-key-of-this-test-only"
NOW = 1_800_000_000.0


def test_a_token_is_good_for_its_device_until_it_is_over() -> None:
    keys = CredentialKeys(OLD)
    token = issue(keys, MAC, NOW)
    assert is_valid(keys, token, MAC, NOW)
    assert is_valid(keys, token, MAC, NOW + LIFE_SECONDS - 1)
    assert not is_valid(keys, token, MAC, NOW + LIFE_SECONDS)
    assert not is_valid(keys, token, OTHER, NOW)


def test_a_token_outlives_a_new_key_and_not_its_retirement() -> None:
    token = issue(CredentialKeys(OLD), MAC, NOW)
    assert is_valid(CredentialKeys(f"k2:another-key-of-this-test,{OLD}"), token, MAC, NOW)
    assert not is_valid(CredentialKeys("k2:another-key-of-this-test"), token, MAC, NOW)


def test_a_revoked_device_has_no_good_token() -> None:
    keys = CredentialKeys(OLD)
    token = issue(keys, MAC, NOW)
    keys.revoke([MAC])
    assert not is_valid(keys, token, MAC, NOW)


def test_a_token_counts_as_long_as_the_password_of_its_device() -> None:
    keys = CredentialKeys(OLD)
    token, unknown = issue(keys, MAC, NOW, 7), issue(keys, MAC, NOW)
    keys.require(Minima(7, {OTHER: 9}))
    assert is_valid(keys, token, MAC, NOW)
    keys.require(Minima(0, {MAC: 8}))
    assert not is_valid(keys, token, MAC, NOW)
    assert is_valid(keys, unknown, MAC, NOW)
    terms, key_id, signature = token.split(".")
    for forged in (terms.partition("-")[0], terms.replace("-7", "-9"), f"{terms}-9", terms.replace("-7", "-07")):
        assert not is_valid(keys, f"{forged}.{key_id}.{signature}", MAC, NOW)
    keys.revoke([MAC])
    assert not is_valid(keys, issue(keys, MAC, NOW, 8), MAC, NOW)


JUNK = ["", ".", "..", "x.k1.y", "9" * 400 + ".k1.y", "1800000600.k1.", "1800000600.k9.é", "٣.k1.a", "1800000600-.k1.a"]


@pytest.mark.parametrize("token", [*JUNK, "1-1-1.k1.a"])
def test_junk_is_no_token(token: str) -> None:
    assert not is_valid(CredentialKeys(OLD), token, MAC, NOW)


def test_a_longer_life_cannot_be_written_into_a_token() -> None:
    keys = CredentialKeys(OLD)
    _, key_id, signature = issue(keys, MAC, NOW).split(".")
    assert not is_valid(keys, f"{int(NOW) + LIFE_SECONDS + 1}.{key_id}.{signature}", MAC, NOW)


def test_a_token_is_no_password_and_a_password_no_token() -> None:
    keys = CredentialKeys(OLD)
    token = issue(keys, MAC, NOW)
    assert keys.verify(MAC, "device.k1", token.rpartition(".")[2]) is None
    assert not is_valid(keys, f"{int(NOW) + 60}.k1.{keys.issue('device', MAC).password}", MAC, NOW)

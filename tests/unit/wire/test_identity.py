import base64
import hashlib
import hmac

import pytest

from fleet.ground.errors import ConfigError
from fleet.wire.identity import CredentialKeys, Minima, Username, parse_username

MAC = "aa:bb:cc:dd:ee:ff"
KEYS = CredentialKeys("k2:" + "b" * 32 + ",k1:" + "a" * 32)


def test_the_password_is_the_hmac_of_client_id_and_user_name() -> None:
    given = KEYS.issue("device", MAC)
    digest = hmac.new(b"b" * 32, f"{MAC}|device.k2".encode(), hashlib.sha256).digest()
    assert given.username == "device.k2"
    assert given.password == base64.b64encode(digest).decode()


def test_issued_credentials_verify() -> None:
    device, service = KEYS.issue("device", MAC), KEYS.issue("service", "fleet-shard-3")
    assert KEYS.verify(device.client_id, device.username, device.password) == "device"
    assert KEYS.verify(service.client_id, service.username, service.password) == "service"


def test_an_older_key_is_still_valid_and_a_retired_one_is_not() -> None:
    old = CredentialKeys("k1:" + "a" * 32).issue("device", MAC)
    assert KEYS.verify(old.client_id, old.username, old.password) == "device"
    assert CredentialKeys("k2:" + "b" * 32).verify(old.client_id, old.username, old.password) is None


def test_credentials_are_worth_nothing_for_another_client_id_or_kind() -> None:
    mine = KEYS.issue("device", MAC)
    assert KEYS.verify("aa:bb:cc:dd:ee:00", mine.username, mine.password) is None
    assert KEYS.verify(MAC, "service.k2", mine.password) is None
    assert KEYS.verify(MAC, "device.k1", mine.password) is None
    assert KEYS.verify(MAC, mine.username, "") is None
    assert KEYS.verify(MAC, mine.username, "密码") is None


def test_a_device_must_use_its_canonical_mac_and_a_service_its_prefix() -> None:
    shouting = KEYS.issue("device", MAC.upper())
    assert KEYS.verify(shouting.client_id, shouting.username, shouting.password) is None
    stray = KEYS.issue("service", "other")
    assert KEYS.verify(stray.client_id, stray.username, stray.password) is None


@pytest.mark.parametrize("text", ["", "k1", "k1:short", "k1:" + "a" * 32 + ",k1:" + "b" * 32, "k 1:" + "a" * 32])
def test_bad_keys_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        CredentialKeys(text)


def test_the_plugins_file_has_a_line_for_each_key() -> None:
    assert KEYS.as_file() == "k2 " + "b" * 32 + "\nk1 " + "a" * 32 + "\n"


def test_the_plugins_file_is_understood_too() -> None:
    assert CredentialKeys(KEYS.as_file()).ids == ("k2", "k1")
    assert CredentialKeys("k1:" + "a" * 32 + "\n k2\t" + "b" * 32 + " \n").ids == ("k1", "k2")


def test_a_revoked_device_proves_nothing_until_it_is_let_in_again() -> None:
    keys = CredentialKeys(KEYS.as_file())
    mine = keys.issue("device", MAC)
    keys.revoke([MAC])
    assert keys.verify(mine.client_id, mine.username, mine.password) is None
    keys.revoke([])
    assert keys.verify(mine.client_id, mine.username, mine.password) == "device"


def test_other_keys_count_from_the_moment_they_are_taken_and_wrong_ones_are_not_taken() -> None:
    keys = CredentialKeys("k1:" + "a" * 32)
    mine = keys.issue("device", MAC)
    keys.replace("k2:" + "b" * 32 + ",k1:" + "a" * 32)
    assert keys.issue("device", MAC).username == "device.k2"
    assert keys.verify(mine.client_id, mine.username, mine.password) == "device"
    with pytest.raises(ConfigError):
        keys.replace("k3")
    keys.replace("k2:" + "b" * 32)
    assert keys.verify(mine.client_id, mine.username, mine.password) is None


def test_the_user_name_says_under_which_policy_it_was_issued_and_the_generation() -> None:
    given = KEYS.issue("device", MAC, policy="first", generation=3)
    assert given.username == "device.k2.first.3"
    assert parse_username(given.username) == Username("device", "k2", "first", 3)
    assert KEYS.verify(MAC, given.username, given.password) == "device"
    assert KEYS.verify(MAC, "device.k2.first.4", given.password) is None
    assert KEYS.verify(MAC, "device.k2.code.3", given.password) is None


def test_the_old_form_of_a_user_name_has_generation_0() -> None:
    assert parse_username("device.k1") == Username("device", "k1")
    assert parse_username("service.k1") == Username("service", "k1")


@pytest.mark.parametrize(
    ("policy", "generation"), [("open", 1), ("first", 0), ("code", -1), ("closed", 2**31), ("", 1), ("OPEN", 0)]
)
def test_no_credentials_are_issued_that_nobody_would_take(policy: str, generation: int) -> None:
    with pytest.raises(ValueError, match="no such user name"):
        KEYS.issue("device", MAC, policy=policy, generation=generation)  # type: ignore[arg-type]


def test_a_generation_below_the_minimum_counts_no_longer() -> None:
    keys = CredentialKeys(KEYS.as_file())
    old, third = keys.issue("device", MAC), keys.issue("device", MAC, policy="code", generation=3)
    service = keys.issue("service", "fleet-x")

    def admitted() -> list[bool]:
        return [bool(keys.verify(one.client_id, one.username, one.password)) for one in (old, third, service)]

    assert admitted() == [True, True, True]
    keys.require(Minima(0, {MAC: 3}))
    assert admitted() == [False, True, True]
    keys.require(Minima(0, {MAC: 4}))
    assert admitted() == [False, False, True]
    keys.require(Minima(1, {"aa:bb:cc:dd:ee:00": 4}))
    assert admitted() == [False, True, True]
    keys.require(Minima())
    assert admitted() == [True, True, True]

import pytest

from fleet.ground.errors import ConfigError
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.profiles.identity import Identity, headers, system_info
from fleet.workbench.sim.profiles.profile import PROFILES, find_profile

IDENTITY = Identity.of("02:00:00:00:00:01")


def test_all_eight_kinds_of_the_contract_and_firmware_2_5_are_there() -> None:
    assert {f"P{number}" for number in range(1, 10)} <= PROFILES.keys()
    assert all(profile.name == name and profile.about for name, profile in PROFILES.items())


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="P1, P1-camera"):
        find_profile("P10")


@pytest.mark.requirement("XZ-044")
def test_only_firmware_2_5_has_a_queue_of_20_and_knows_notifications() -> None:
    newest = PROFILES["P9"]
    assert (newest.version, newest.queue, newest.notify, newest.error_codes) == ("2.5.0", 20, True, True)
    for profile in PROFILES.values():
        assert profile is newest or (profile.queue, profile.notify, profile.error_codes) == (40, False, False)


def test_each_says_hello_as_its_build_does() -> None:
    assert '"features":{"mcp":true,"glyph_push":true},"text_font"' in outbound.hello(PROFILES["P1"])
    assert '"features":{"aec":true,"mcp":true,"glyph_push":true}' in outbound.hello(PROFILES["P4"])
    for name in ("P6", "P8"):
        assert '"features":{"mcp":true},"audio_params"' in outbound.hello(PROFILES[name])
    assert '"frame_duration":20' in outbound.hello(PROFILES["P8"])


def test_a_modem_has_no_mac_in_its_body_and_a_wifi_board_no_imei() -> None:
    assert '"imei"' in system_info(IDENTITY, PROFILES["P7"])
    assert IDENTITY.mac not in system_info(IDENTITY, PROFILES["P7"]).split('"board":')[1]
    assert '"imei"' not in system_info(IDENTITY, PROFILES["P1"])


def test_a_name_of_a_wifi_is_put_in_as_it_is() -> None:
    odd = Identity.of(IDENTITY.mac, 'a"b')
    assert '"ssid":"a"b"' in system_info(odd, PROFILES["P1"])


def test_only_stock_firmware_says_which_activation_it_knows() -> None:
    assert headers(IDENTITY, PROFILES["P1"])["Activation-Version"] == "1"
    assert "Activation-Version" not in headers(IDENTITY, PROFILES["P8"])
    burnt = Identity(IDENTITY.mac, IDENTITY.client, serial="SN1", key=b"k")
    assert headers(burnt, PROFILES["P1"])["Activation-Version"] == "2"
    assert headers(burnt, PROFILES["P1"])["Serial-Number"] == "SN1"

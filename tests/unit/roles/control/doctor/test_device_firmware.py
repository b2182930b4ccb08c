"""What the doctor finds about a device's firmware."""

from dataclasses import replace

import pytest

from fleet.adapters.redis.access.admissions import Admission
from fleet.adapters.redis.devices.view import DeviceView
from fleet.roles.control.doctor.device_firmware import examine_firmware

NOW = 1_000.0
KNOWN = DeviceView("aa:bb:cc:dd:ee:ff", {}, {}, None, None, Admission(), False, {}, {}, 0, False)
OFFER = {"of": "7-1", "ofv": "2.5.0", "oft": "2000000", "ofn": "0"}


@pytest.mark.parametrize(
    ("record", "level", "words"),
    [
        ({"fw": "2.4.2"}, "ok", "firmware 2.4.2"),
        ({"fw": "v2"}, "warning", "cannot be compared"),
        ({"fw": "2.4.2", **OFFER}, "warning", "job 7 offers 2.5.0"),
        ({"fw": "2.5.0", **OFFER}, "ok", "firmware 2.5.0"),
        ({"fw": "2.4.2", **OFFER, "oft": "1000"}, "ok", "firmware 2.4.2"),
        ({"fw": "2.4.2", **OFFER, "ofn": "2"}, "problem", "does not take it"),
        ({"fw": "2.4.2", **OFFER, "ofn": "1", "ofk": "1"}, "warning", "offers 2.5.0"),
    ],
)
def test_an_offer_and_what_becomes_of_it(record: dict[str, str], level: str, words: str) -> None:
    (found,) = examine_firmware(replace(KNOWN, record=record), NOW)
    assert found.verdict == level and words in found.message


def test_a_device_that_says_nothing_of_its_firmware_is_left_alone() -> None:
    assert list(examine_firmware(KNOWN, NOW)) == []

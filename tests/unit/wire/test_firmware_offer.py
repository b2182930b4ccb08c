"""Names of downloads."""

import pytest

from fleet.wire.firmware_offer import FirmwareOffer, offer_name, read_offer_name

MAC = "02:f1:ee:00:00:0a"


def test_a_name_says_which_device_downloads_for_which_attempt() -> None:
    offer = FirmwareOffer(id="7-2", file="ab" * 32, secret="0f" * 16)
    assert read_offer_name(offer_name(MAC, offer)) == (MAC, "7-2", "0f" * 16)


@pytest.mark.parametrize(
    "text", ["", "02f1ee00000a-7-2", "02F1EE00000A-7-2-" + "0f" * 16, "x02f1ee00000a-7-2-" + "0" * 32]
)
def test_other_names_mean_nothing(text: str) -> None:
    assert read_offer_name(text) is None

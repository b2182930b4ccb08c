"""What old firmware does otherwise."""

import pytest

from fleet.core.firmware_traits import clears_on_stop, loses_wake_word

BOARD = "bread-compact-wifi"


AFFECTED = "2.2.2, 2.2.3, 2.2.6, 2.3.0, v2.2.6, 2.3, 2.2.6-rc1, 2.2.4+local,  2.3.0 "
SOUND = ", 1.8.9, 2.0.5, 2.1.0, 2.4.0, 2.4.2, 2.5.0, 2.20.1, 22.2.2, dev, x2.2.6, 2, 2., 2.22222, py-xiaozhi-2.2.3"


@pytest.mark.parametrize("version", AFFECTED.split(", "))
def test_versions_that_lose_wake_words(version: str) -> None:
    assert loses_wake_word(BOARD, version)


@pytest.mark.parametrize("version", [*SOUND.split(", "), "2.2" + "9" * 5000])
def test_versions_that_do_not_or_are_none(version: str) -> None:
    assert not loses_wake_word(BOARD, version)


def test_another_client_has_versions_of_its_own() -> None:
    assert not loses_wake_word("py-xiaozhi", "2.2.3")


@pytest.mark.parametrize(
    ("board", "firmware", "clears"),
    [
        ("bread-compact-wifi", "1.8.9", True),
        ("bread-compact-wifi", "2.1.0", True),
        ("bread-compact-wifi", "2.2.2", False),
        ("bread-compact-wifi", "2.4.2", False),
        ("bread-compact-wifi", "py-xiaozhi-2.1.1", True),
        ("py-xiaozhi", "3.0", True),
        ("", "", False),
        ("board", "dev", False),
    ],
)
def test_devices_that_clear_their_queue_when_speech_is_over(board: str, firmware: str, clears: bool) -> None:
    assert clears_on_stop(board, firmware) is clears

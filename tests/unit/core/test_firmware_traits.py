import pytest

from fleet.core.firmware_traits import clears_on_stop, loses_wake_word


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


@pytest.mark.parametrize(
    ("firmware", "loses"),
    [
        ("2.1.0", False),
        ("2.2.2", True),
        ("v2.3", True),
        ("2.2.6-rc1", True),
        ("2.4.0", False),
        ("", False),
        ("x", False),
    ],
)
def test_firmware_that_loses_wake_words_while_the_channel_is_open(firmware: str, loses: bool) -> None:
    assert loses_wake_word("bread-compact-wifi", firmware) is loses
    assert not loses_wake_word("py-xiaozhi", firmware)

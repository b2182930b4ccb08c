"""`notify` as firmware 2.5 reads it (docs/notify.md and application.cc at 77500b8)."""

import json

import pytest

from fleet.wire import notify
from fleet.wire.notify import Subtitle
from fleet.workbench.sim.firmware import notifications


@pytest.mark.requirement("XZ-043")
@pytest.mark.parametrize(
    ("firmware", "known"),
    [
        *((version, False) for version in ("", "2.4.2", "2.4.99", "1.9", "v2.5", "dev", "2")),
        *((version, True) for version in ("2.5", "2.5.0", "2.10.1", "3.0")),
    ],
)
def test_only_firmware_from_2_5_on_knows_it(firmware: str, known: bool) -> None:
    assert notify.is_known(firmware) is known


@pytest.mark.requirement("XZ-040")
def test_a_message_has_an_address_and_perhaps_subtitles() -> None:
    url = "https://files.example.org/done.ogg"
    bare, full = notify.write(url), notify.write(url, [Subtitle(0, "fertig ✓"), Subtitle(1800, 'say "hi"')])
    assert bare is not None
    assert full is not None
    assert json.loads(bare) == {"type": "notify", "audio_url": url}
    assert json.loads(full)["subtitles"] == [
        {"start_ms": 0, "text": "fertig ✓"},
        {"start_ms": 1800, "text": 'say "hi"'},
    ]
    assert [list(notifications.check(json.loads(one), known=True)) for one in (bare, full)] == [[], []]


def test_a_message_that_a_small_board_could_not_take_is_not_written() -> None:
    assert notify.write("http://host/a.ogg", [Subtitle(0, "x" * 6000)]) is None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("0:Ready.", Subtitle(0, "Ready.")),
        ("1800:at 18:00", Subtitle(1800, "at 18:00")),
        ("5:", Subtitle(5, "")),
        ("Ready.", None),
        ("-1:x", None),
        ("4294967296:x", None),
        ("²:x", None),
    ],
)
def test_a_subtitle_is_its_millisecond_and_its_text(text: str, read: Subtitle | None) -> None:
    assert notify.read_subtitle(text) == read


@pytest.mark.parametrize("url", ["", "ftp://host/a", "file:///etc/passwd", "http://host/a b", "http://host/\n", "//x"])
def test_addresses_that_firmware_does_not_fetch_from_are_refused(url: str) -> None:
    assert not notify.is_playable(url)

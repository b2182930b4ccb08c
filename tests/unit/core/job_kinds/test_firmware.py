"""The kinds of jobs that give devices an image."""

import pytest

from fleet.core.job_kinds.firmware import TAKEN, assets_terms, firmware_terms
from fleet.core.permissions import DEVICES_DANGEROUS
from fleet.core.query.conditions import Comparison, Negation
from fleet.core.query.fields import version_number

ORDER = {"how": "reboot", "force": False, "board": "b1", "version": "2.5.0"}


@pytest.mark.parametrize(
    ("how", "tool", "connected", "recalled"),
    [
        ("reboot", "self.reboot", True, True),
        ("next_boot", "", False, True),
        ("push", "self.upgrade_firmware", True, False),
    ],
)
def test_each_way_has_its_call(how: str, tool: str, connected: bool, recalled: bool) -> None:
    terms = firmware_terms({**ORDER, "how": how})
    assert (terms.tool, terms.connected, terms.recalled, terms.repeatable) == (tool, connected, recalled, False)
    assert DEVICES_DANGEROUS in terms.scopes and TAKEN in terms.evidence


def test_devices_of_another_board_and_of_versions_that_cannot_be_compared_get_no_image() -> None:
    for skips in (firmware_terms(ORDER).skips, assets_terms(ORDER).skips):
        assert skips["it is another board"] == Negation(Comparison("board", "=", "b1"))
    assert firmware_terms(ORDER).skips["its version cannot be compared"] == Negation(Comparison("firmware", ">=", 0))
    unreadable = firmware_terms({**ORDER, "version": "lab"}).skips
    assert list(unreadable) == ["it is another board", "its version cannot be compared"]


def test_a_newer_version_is_left_alone_unless_forced() -> None:
    number = version_number("2.5.0") or 0
    skips = firmware_terms(ORDER).skips
    assert skips["it runs a newer version"] == Comparison("firmware", ">", number)
    assert skips["it runs this version"] == Comparison("firmware", "=", number)
    assert "it runs a newer version" not in firmware_terms({**ORDER, "force": True}).skips
    assert "it runs this version" in firmware_terms({**ORDER, "force": True}).skips


def test_assets_are_for_one_board_and_proved_by_their_download() -> None:
    terms = assets_terms({"board": "b1"})
    assert (terms.evidence, list(terms.skips)) == ({TAKEN}, ["it is another board"])

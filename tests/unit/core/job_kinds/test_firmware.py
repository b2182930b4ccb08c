"""The kinds of jobs that give devices an image."""

import pytest

from fleet.core.job_kinds.firmware import TAKEN, assets_terms, firmware_terms
from fleet.core.permissions import DEVICES_DANGEROUS

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


def test_a_newer_version_is_left_alone_unless_forced() -> None:
    assert "it runs a newer version" in firmware_terms(ORDER).skips
    assert "it runs a newer version" not in firmware_terms({**ORDER, "force": True}).skips
    assert "it runs this version" in firmware_terms({**ORDER, "force": True}).skips


def test_assets_are_for_one_board_and_proved_by_their_download() -> None:
    terms = assets_terms({"board": "b1"})
    assert (terms.evidence, list(terms.skips)) == ({TAKEN}, ["it is another board"])

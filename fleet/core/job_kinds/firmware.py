"""The kinds `firmware` and `assets`: what is downloaded, for one board."""

from collections.abc import Mapping
from typing import Any, Final

from fleet.core.job_kinds.terms import JobTerms
from fleet.core.permissions import DEVICES_COMMAND, DEVICES_DANGEROUS
from fleet.core.query.conditions import Comparison, Condition, Negation
from fleet.core.query.fields import version_number

TAKEN: Final = "firmware.taken"
"""Kind of the event that a device has begun to download."""
VERIFY_MS: Final = 600_000
"""How long after it was told a device may take until it shows what became of it."""
_TOOLS: Final = {"reboot": "self.reboot", "push": "self.upgrade_firmware", "next_boot": ""}


def firmware_terms(order: Mapping[str, Any]) -> JobTerms:
    """Return the terms of a rollout.

    Args:
        order: `how` and `force` as asked, `board` and `version` of the image.
    """
    version, number = order["version"], version_number(order["version"])
    skips: dict[str, Condition] = {
        **_other_board(order["board"]),
        "its version cannot be compared": Negation(Comparison("firmware", ">=", 0)),
    }
    if number is not None:
        skips["it runs this version"] = Comparison("firmware", "=", number)
        skips |= {} if order["force"] else {"it runs a newer version": Comparison("firmware", ">", number)}
    return JobTerms(
        tool=_TOOLS[order["how"]],
        scopes=(DEVICES_COMMAND, DEVICES_DANGEROUS),
        repeatable=False,
        connected=order["how"] != "next_boot",
        skips=skips,
        evidence=frozenset({"device.booted", "device.online", TAKEN}),
        silence=f"no sign of version {version} within ten minutes",
        recalled=order["how"] != "push",
    )


def assets_terms(order: Mapping[str, Any]) -> JobTerms:
    """Return the terms of a job that gives devices assets; see `firmware_terms`."""
    return JobTerms(
        tool="self.assets.set_download_url",
        scopes=(DEVICES_COMMAND, DEVICES_DANGEROUS),
        repeatable=False,
        skips=_other_board(order["board"]),
        evidence=frozenset({TAKEN}),
        silence="it did not download them within ten minutes",
    )


def _other_board(board: str) -> dict[str, Condition]:
    return {"it is another board": Negation(Comparison("board", "=", board))}

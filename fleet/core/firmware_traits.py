"""Differences of old firmware, derived from its version (device contract 8.1)."""

import re

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?![\d])", re.ASCII | re.IGNORECASE)
_OTHER_CLIENT = "py-xiaozhi"
"""A client with version numbers of its own; it sends its name as the board or before its version."""


def loses_wake_word(board: str, firmware: str) -> bool:
    """Whether the firmware loses a wake word in idle while the audio channel is open, and then stops its detector.

    This is the case from 2.2.2 to 2.3.0: `ContinueWakeWordInvoke` returns in any state but *connecting*, which an open
    channel skips (application.cc). 2.1.0 and before, and 2.4.0 and later, do not have the fault. A version between two
    releases counts as the release that follows.

    Args:
        board: Name of the board, as the device sends it; may be empty.
        firmware: Version, as the device sends it: `2.2.6`, `v2.3`, `2.2.6-rc1`; any text, also empty.
    """
    version = _version(board, firmware)
    return version is not None and (2, 2) <= version < (2, 4)


def clears_on_stop(board: str, firmware: str) -> bool:
    """Whether a device discards its queued audio when it receives `tts stop`.

    Firmware up to 2.1 begins to listen at once, which resets its decoder; so does py-xiaozhi.

    Args:
        board: Name of the board, as the device sends it; may be empty.
        firmware: Version, as the device sends it; any text, also empty.
    """
    version = _version(board, firmware)
    return _is_other_client(board, firmware) or (version is not None and version < (2, 2))


def _version(board: str, firmware: str) -> tuple[int, int] | None:
    found = _VERSION.match(firmware.strip())
    if found is None or _is_other_client(board, firmware):
        return None
    return int(found[1]), int(found[2])


def _is_other_client(board: str, firmware: str) -> bool:
    return _OTHER_CLIENT in board.lower() or firmware.strip().lower().startswith(_OTHER_CLIENT)

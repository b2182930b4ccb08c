"""What old firmware does otherwise, known from its version (device contract 8.1)."""

import re

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?![\d])", re.ASCII | re.IGNORECASE)
_OTHER_CLIENT = "py-xiaozhi"
"""Has versions of its own, and names itself as the board or before its version."""


def loses_wake_word(board: str, firmware: str) -> bool:
    """Whether a wake word in idle is lost while the audio channel is open, and the detector stays off after it.

    So in 2.2.2 to 2.3.0: `ContinueWakeWordInvoke` returns in any state but *connecting*, which an open channel skips
    (application.cc). 2.1.0 and before, and 2.4.0 and later are sound. There was no release between; builds of one are
    taken for the release that follows.

    Args:
        board: What the device says that it is; may be empty.
        firmware: What it runs, as it says: `2.2.6`, `v2.3`, `2.2.6-rc1`; anything, also empty.
    """
    version = _version(board, firmware)
    return version is not None and (2, 2) <= version < (2, 4)


def clears_on_stop(board: str, firmware: str) -> bool:
    """Whether a device throws away what it has not played when it is told that speech is over.

    Firmware up to 2.1 begins to listen at once, which resets its decoder; so does py-xiaozhi.

    Args:
        board: What the device says that it is; may be empty.
        firmware: What it runs, as it says; anything, also empty.
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

"""When a device is called after it connected: its tools are asked for first, and not all are called together."""

import random
from typing import Final

SETTLE_MS: Final = 3_000
"""After its connection a device is left alone."""
JITTER_MS: Final = 10_000
"""Devices that connect together are called at different times."""
_STEP_MS: Final = 500
"""Devices of one time are written together."""


def after_connection(now: int) -> int:
    """Return when a device that connected is called, in ms since 1970."""
    return now + SETTLE_MS + random.randrange(0, JITTER_MS, _STEP_MS)

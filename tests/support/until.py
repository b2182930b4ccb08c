"""Waiting for what another process does."""

import time
from collections.abc import Callable

import pytest
import redis

_STEP = 0.02


def until(holds: Callable[[], bool], seconds: float = 240.0) -> None:
    """Return when a condition holds; a server that does not answer holds nothing. Fail the test after a limit."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        try:
            if holds():
                return
        except redis.RedisError:
            pass
        time.sleep(_STEP)
    pytest.fail("waited too long for another process", pytrace=False)

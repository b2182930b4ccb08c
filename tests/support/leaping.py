"""An event loop whose clock leaps: a limit ends when the test says so, however busy the machine is."""

import asyncio
from collections.abc import Callable

import pytest


def leaping(patch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what puts the clock of the running loop forward by so many seconds.

    Limits of the code and of the test that end within them have ended then. Real time passes as ever.
    """
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0

    def leap(seconds: float) -> None:
        nonlocal ahead
        ahead += seconds

    patch.setattr(loop, "time", lambda: real() + ahead)
    return leap

"""Whether work grows in proportion to what is given, told without a limit in seconds."""

import time
from collections.abc import Callable

_TIMES = 4
_MOST = 9
"""Four times as much may take this many times as long: work that grows with the square takes 16 times."""
_LEAST = 0.002
"""Seconds; less is mostly the clock's."""


def grows_evenly(work: Callable[[int], object], size: int) -> bool:
    """Whether work on four times as much takes about four times the processor's time."""
    least = max(_LEAST, min(_once(work, size) for _ in range(3)))
    return any(_once(work, size * _TIMES) < _MOST * least for _ in range(3))


def _once(work: Callable[[int], object], size: int) -> float:
    begun = time.process_time()
    work(size)
    return time.process_time() - begun

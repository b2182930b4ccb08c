"""How late an edge sends: the clock when a packet is handed out to be sealed and sent, less the time it was due."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from fleet.core.playout import Playout, PlayoutStep


@contextmanager
def watched() -> Iterator[list[float]]:
    """Collect the milliseconds of every packet of this process during the block.

    From inside, because a receiver knows only the spacing, not what was due. Looking costs up to 10 % of the edge's
    work on a packet, so its CPU is measured at other times.
    """
    late_ms, due, step = list[float](), dict[Playout, float](), Playout.step

    def watch(playout: Playout, now: float) -> PlayoutStep:
        found = step(playout, now)
        if found.packet is not None and playout in due:
            late_ms.append((time.monotonic() - due[playout]) * 1000)
        if found.again is not None:
            due[playout] = found.again
        return found

    # By name: to mypy the assignment of a method is a mistake.
    name = "step"
    setattr(Playout, name, watch)
    try:
        yield late_ms
    finally:
        setattr(Playout, name, step)

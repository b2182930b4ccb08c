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
    late_ms, due = list[float](), dict[Playout, float]()
    step, next_packet = Playout.step, Playout.next_packet

    def note(playout: Playout, packet: bytes | None, again: float | None) -> None:
        if packet is not None and playout in due:
            late_ms.append((time.monotonic() - due[playout]) * 1000)
        if again is not None:
            due[playout] = again

    def watch_step(playout: Playout, now: float) -> PlayoutStep:
        found = step(playout, now)
        note(playout, found.packet, found.again)
        return found

    def watch_next_packet(playout: Playout, now: float) -> bytes | None:
        found = next_packet(playout, now)
        if found is not None:
            note(playout, found, playout.due(now))
        return found

    # By name: to mypy the assignment of a method is a mistake.
    for name, watch in (("step", watch_step), ("next_packet", watch_next_packet)):
        setattr(Playout, name, watch)
    try:
        yield late_ms
    finally:
        for name, method in (("step", step), ("next_packet", next_packet)):
            setattr(Playout, name, method)

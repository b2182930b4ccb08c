"""How late an edge sends: the clock when a packet was handed out to be sealed and sent, less the time it was due."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from fleet.core.playout import PacketSink, Playout, PlayoutStep


@contextmanager
def watched() -> Iterator[list[float]]:
    """Collect the milliseconds of every packet of this process during the block.

    From inside, because a receiver knows only the spacing, not what was due. Looking costs up to 10 % of the edge's
    work on a packet, so its CPU is measured at other times.
    """
    late_ms, due = list[float](), dict[Playout, float]()
    step, send_usual = Playout.step, Playout.send_usual

    def note(playout: Playout, sent: bool, again: float | None) -> None:
        if sent and playout in due:
            late_ms.append((time.monotonic() - due[playout]) * 1000)
        if again is not None:
            due[playout] = again

    def watch_step(playout: Playout, now: float) -> PlayoutStep:
        found = step(playout, now)
        note(playout, found.packet is not None, found.again)
        return found

    def watch_send_usual(playout: Playout, now: float, sink: PacketSink) -> float | None:
        again = send_usual(playout, now, sink)
        note(playout, again is not None, again)
        return again

    # By name: to mypy the assignment of a method is a mistake.
    for name, watch in (("step", watch_step), ("send_usual", watch_send_usual)):
        setattr(Playout, name, watch)
    try:
        yield late_ms
    finally:
        for name, method in (("step", step), ("send_usual", send_usual)):
            setattr(Playout, name, method)

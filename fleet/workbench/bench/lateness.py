"""How late an edge sends: the clock when a packet was handed out to be sealed and sent, less the time it was due."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from fleet.core.playout import Playout, PlayoutStep
from fleet.core.usual_packets import UsualPackets


@contextmanager
def watched() -> Iterator[list[float]]:
    """Collect the milliseconds of every packet of this process during the block.

    From inside, because a receiver knows only the spacing, not what was due. Looking costs up to 10 % of the edge's
    work on a packet, so its CPU is measured at other times.
    """
    late_ms, due = list[float](), dict[UsualPackets, float]()
    step, on_timer = Playout.step, UsualPackets.on_timer

    def note(usual: UsualPackets, sent: bool, again: float | None) -> None:
        if sent and usual in due:
            late_ms.append((time.monotonic() - due[usual]) * 1000)
        if again is not None:
            due[usual] = again

    def watch_step(playout: Playout, now: float) -> PlayoutStep:
        found = step(playout, now)
        note(playout.usual, found.packet is not None, found.again)
        return found

    def watch_on_timer(usual: UsualPackets, now: float) -> float | None:
        left, waiting = usual.left, len(usual.packets)
        again = on_timer(usual, now)
        if left:
            note(usual, len(usual.packets) < waiting, again)
        return again

    # By name: to mypy the assignment of a method is a mistake.
    for owner, name, watch in ((Playout, "step", watch_step), (UsualPackets, "on_timer", watch_on_timer)):
        setattr(owner, name, watch)
    try:
        yield late_ms
    finally:
        for owner, name, method in ((Playout, "step", step), (UsualPackets, "on_timer", on_timer)):
            setattr(owner, name, method)

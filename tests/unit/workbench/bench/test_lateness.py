import time
from dataclasses import dataclass

from fleet.core.playout import Playout
from fleet.core.playout_device import SPACING
from fleet.core.usual_packets import UsualPackets
from fleet.workbench.bench import lateness


@dataclass
class Answer:
    playout: Playout

    def send(self, payload: bytes, /) -> bool:
        return payload == b"packet"

    def take_step(self, now: float) -> float | None:
        return self.playout.step(now).again


def test_every_packet_with_a_due_time_is_watched_and_nothing_is_left_behind() -> None:
    before = Playout.step, UsualPackets.on_timer
    playout = Playout(60, b"silence")
    start = time.monotonic() - 10
    playout.usual.attach(answer := Answer(playout), answer)
    playout.start(start)
    playout.queue.add([b"packet"] * 3)
    with lateness.watched() as late_ms:
        now = start + 1
        for _ in range(3):
            playout.usual.on_timer(now)
            now += SPACING
    # What was due is known from the second packet on: it was due nine seconds before the start of the test, or later.
    assert len(late_ms) == 2
    assert all(8_000 < late < (time.monotonic() - start - 1) * 1000 for late in late_ms)
    assert (Playout.step, UsualPackets.on_timer) == before

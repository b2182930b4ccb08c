"""That they are those which a step of the playout would return stands in test_playout.py."""

from dataclasses import dataclass, field

from fleet.core.playout import Playout
from fleet.core.playout_device import LEAD, Pacing

START = 1000.0
FRAME = 0.06


@dataclass
class Answer:
    playout: Playout = field(default_factory=lambda: Playout(60, b"silence"))
    sent: list[bytes] = field(default_factory=list)
    steps: int = 0
    """Those that sent a packet."""

    def __post_init__(self) -> None:
        self.playout.usual.attach(self, self)
        self.playout.start(START)

    def send(self, payload: bytes, /) -> bool:
        self.sent.append(payload)
        return True

    def take_step(self, now: float) -> float | None:
        step = self.playout.step(now)
        if step.packet is not None:
            self.steps += 1
            self.sent.append(step.packet)
        return step.again

    def run(self, until: int) -> float:
        """Fire the timer at its times until so many packets were sent; return when the next one is due."""
        now: float | None = START + 1
        while len(self.sent) < until:
            assert now is not None
            now = self.playout.usual.on_timer(now)
        assert now is not None
        return now


def test_a_step_begins_and_the_rest_is_usual() -> None:
    answer = Answer()
    answer.playout.queue.add([b"%d" % at for at in range(30)])
    answer.run(30)
    assert answer.sent == [b"%d" % at for at in range(30)]
    assert answer.steps == 1


def test_a_packet_is_not_sent_before_its_time() -> None:
    answer = Answer()
    answer.playout.queue.add([b"packet"] * 30)
    due = answer.run(20)
    assert answer.playout.usual.on_timer(due - 0.01) == due
    assert len(answer.sent) == 20
    answer.playout.usual.on_timer(due)
    assert len(answer.sent) == 21


def test_a_tick_that_came_late_does_not_shorten_the_time_to_the_next_packets_below_half_of_one() -> None:
    answer = Answer()
    answer.playout.queue.add([b"packet"] * 30)
    late = answer.run(20) + FRAME
    due = answer.playout.usual.on_timer(late)
    assert due is not None and due - late >= FRAME / 2 - 1e-6


def test_with_loss_no_packet_waits_for_the_lead_alone() -> None:
    plain, lossy = Answer(), Answer(Playout(60, b"silence", None, Pacing(LEAD, 0.5)))
    for answer in (plain, lossy):
        answer.playout.queue.add([b"packet"] * 30)
    assert lossy.run(20) < plain.run(20)
    assert plain.steps == lossy.steps == 1


def test_packets_that_come_meanwhile_are_counted_with_the_last_one_that_was() -> None:
    answer = Answer()
    answer.playout.queue.add([b"packet"] * 10)
    answer.run(5)
    answer.playout.queue.add([b"packet"] * 10)
    answer.run(20)
    assert answer.steps == 1


def test_while_a_voice_waits_for_room_a_step_sends_the_next_packet() -> None:
    answer = Answer()
    queue = answer.playout.queue
    queue.add([b"packet"] * 10)
    answer.run(5)
    queue.add([b"packet"] * queue.room)
    answer.playout.watch_room()
    answer.run(6)
    assert (answer.steps, queue.room) == (2, 1)


def test_after_the_last_packet_nothing_is_usual_until_silence_is_due() -> None:
    answer = Answer()
    answer.playout.queue.add([b"packet"] * 3)
    answer.playout.usual.on_timer(answer.run(3))
    assert answer.sent[3:] == [b"silence"]
    assert answer.playout.usual.left == 0

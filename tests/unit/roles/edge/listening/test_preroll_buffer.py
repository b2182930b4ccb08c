from fleet.roles.edge.listening.burst import Burst
from fleet.roles.edge.listening.preroll_buffer import HELD_MS, LIVE_SECONDS, PREROLL_SECONDS, PrerollBuffer

FRAME_MS = 60
MOST = HELD_MS // FRAME_MS


def filled(packets: int, apart: float) -> tuple[PrerollBuffer, float]:
    """Return a buffer with packets this many seconds apart, and the time of the last one."""
    one = PrerollBuffer(FRAME_MS)
    for number in range(packets):
        one.add(bytes([number]), number * apart)
    return one, (packets - 1) * apart


def test_it_holds_the_newest_packets() -> None:
    one, _ = filled(MOST + 5, 0.06)
    assert one.take() == [bytes([number]) for number in range(5, MOST + 5)]
    assert one.take() == []


def test_an_utterance_gets_what_was_said_just_before_it() -> None:
    one, now = filled(20, 0.06)
    recent = one.take_recent(now)
    assert recent == [bytes([number]) for number in range(15, 20)] and len(recent) * 0.06 <= PREROLL_SECONDS
    assert one.take() == [], "the rest is forgotten"
    one, now = filled(20, 0.06)
    assert len(one.take_recent(now, waited=0.3)) == 10
    one, now = filled(20, 0.06)
    assert one.take_recent(now + 60) == []


def test_only_packets_that_took_their_time_show_an_open_microphone() -> None:
    one, now = filled(MOST, 0.06)
    assert one.is_live(now) and now >= LIVE_SECONDS
    burst, now = filled(MOST, 0.001)
    assert not burst.is_live(now)
    short, now = filled(MOST - 1, 0.2)
    assert not short.is_live(now)


def test_a_burst_is_ahead_of_the_time_and_decays() -> None:
    one = Burst(FRAME_MS)
    assert one.seconds(5.0) == 0.0
    for _ in range(10):
        one.add(5.0)
    assert abs(one.seconds(5.0) - 0.6) < 1e-9 and abs(one.seconds(5.5) - 0.1) < 1e-9
    assert one.seconds(9.0) == 0.0

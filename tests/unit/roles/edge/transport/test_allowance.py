import pytest

from fleet.roles.edge.transport.allowance import AHEAD_SECONDS, BURST, RATE, Allowance


def admit(one: Allowance, packets: int, now: float, first: int = 1) -> list[str | None]:
    """Return what the allowance says of so many packets at one time."""
    answers: list[str | None] = []
    for number in range(first, first + packets):
        answers.append(one.refuse(number, now))
        if answers[-1] is None:
            one.pace.add(now)
    return answers


@pytest.mark.parametrize("frame_ms", [60, 20])
def test_a_burst_is_admitted_and_then_the_lasting_rate(frame_ms: int) -> None:
    one, more = Allowance(frame_ms, 0.0), 60 // frame_ms
    burst = int(BURST) * more
    assert admit(one, burst, 0.0) == [None] * burst
    assert one.refuse(1, 0.0) == "rate"
    assert admit(one, int(RATE) * more + 2, 1.0)[-2:] == ["rate", "rate"]


def test_what_was_saved_never_exceeds_a_burst() -> None:
    one = Allowance(60, 0.0)
    assert admit(one, int(BURST) + 1, 1000.0)[-1] == "rate"


def test_a_number_that_is_ahead_of_the_clock_is_refused() -> None:
    one, ahead = Allowance(60, 0.0), int(AHEAD_SECONDS * 1000 / 60)
    assert one.refuse(ahead, 0.0) is None and one.refuse(ahead + 1, 0.0) == "jump"
    assert one.refuse(ahead + 17, 1.0) is None, "a device's clock may be two percent fast"
    assert one.refuse(ahead + 18, 1.0) == "jump"

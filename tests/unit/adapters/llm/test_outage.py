from fleet.adapters.llm.outage import FIRST_PAUSE, LONGEST_PAUSE, PROBE_SECONDS, Outage


def test_what_has_not_failed_may_be_tried_by_everybody() -> None:
    outage = Outage()
    assert [outage.may_try(0.0) for _ in range(3)] == [True] * 3


def test_what_failed_is_left_alone_for_a_while() -> None:
    outage = Outage()
    outage.failed(100.0)
    assert not outage.may_try(100.0 + FIRST_PAUSE - 0.01)
    assert outage.may_try(100.0 + FIRST_PAUSE)


def test_after_the_pause_one_tries_for_all() -> None:
    outage = Outage()
    outage.failed(0.0)
    assert [outage.may_try(FIRST_PAUSE) for _ in range(3)] == [True, False, False]


def test_a_probe_whose_outcome_never_came_is_followed_by_another() -> None:
    outage = Outage()
    outage.failed(0.0)
    assert outage.may_try(FIRST_PAUSE)
    assert outage.may_try(FIRST_PAUSE + PROBE_SECONDS)


def test_pauses_grow_and_are_bounded() -> None:
    outage, now, pauses = Outage(), 0.0, []
    for _ in range(8):
        outage.failed(now)
        begun = now
        while not outage.may_try(now):
            now += 1.0
        pauses.append(now - begun)
    assert pauses[:4] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE]
    assert max(pauses) == pauses[-1] == LONGEST_PAUSE


def test_failures_of_attempts_that_began_together_count_once() -> None:
    outage = Outage()
    for now in (0.0, 0.1, 4.0):
        outage.failed(now)
    assert outage.may_try(FIRST_PAUSE)


def test_a_success_ends_it() -> None:
    outage = Outage()
    outage.failed(0.0)
    outage.worked()
    assert [outage.may_try(0.1) for _ in range(2)] == [True, True]
    outage.failed(1.0)
    assert outage.may_try(1.0 + FIRST_PAUSE), "the pause begins anew"

from fleet.core.reference import KEPT_SECONDS, EchoReference


def filled(count: int) -> EchoReference:
    reference = EchoReference(60)
    for number in range(1, count + 1):
        reference.note_sent(60 * number, b"%d" % number)
    return reference


def test_a_packet_is_found_by_its_timestamp_once() -> None:
    reference = filled(5)
    assert reference.take(120, 0.0) == b"2"
    assert reference.take(120, 0.0) == b""
    assert reference.take(60, 0.0) == b"", "older than one that was played"
    assert reference.take(300, 0.0) == b"5"


def test_an_unknown_timestamp_and_none_find_nothing_and_lose_nothing() -> None:
    reference = filled(2)
    assert reference.take(0, 0.0) == reference.take(90, 0.0) == reference.take(6000, 0.0) == b""
    assert reference.take(60, 0.0) == b"1"


def test_a_frame_that_was_lost_on_its_way_takes_the_packet_after_the_last_one() -> None:
    reference = filled(5)
    assert reference.take_next(0.0) == b"", "nothing was played yet"
    assert reference.take(60, 0.0) == b"1"
    assert [reference.take_next(0.0), reference.take_next(0.0)] == [b"2", b"3"]
    assert reference.take(240, 0.0) == b"4"


def test_three_seconds_are_kept() -> None:
    reference = filled(200)
    assert reference.take(60 * 150, 0.0) == b""
    assert reference.take(60 * 151, 0.0) == b"151"


def test_all_is_forgotten_when_the_device_has_played_the_answer() -> None:
    reference = filled(5)
    reference.check(10.0, speaking=True)
    reference.check(10.0 + KEPT_SECONDS - 0.1, speaking=False)
    assert reference.take(60, 0.0) == b"1"
    reference.check(10.0 + KEPT_SECONDS, speaking=False)
    assert reference.take(120, 0.0) == reference.take_next(0.0) == b""

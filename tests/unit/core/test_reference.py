from fleet.core.reference import AHEAD, BEHIND, KEPT_SECONDS, NOTHING, EchoReference


def filled(count: int) -> EchoReference:
    reference = EchoReference(60)
    for number in range(1, count + 1):
        reference.note_sent(60 * number, b"%d" % number)
    return reference


def test_a_packet_is_found_by_its_timestamp_with_its_neighbours_as_often_as_asked() -> None:
    reference = filled(30)
    expected = tuple((number, b"%d" % number) for number in range(10 - BEHIND, 10 + AHEAD + 1))
    for _ in range(2):
        found = reference.find(600, 0.0)
        assert (found.index, found.packets) == (10, expected)
    assert reference.find(60, 0.0).packets[0] == (1, b"1")
    assert reference.find(1800, 0.0).packets[-1] == (30, b"30")


def test_an_unknown_timestamp_and_none_find_nothing_and_are_no_echo() -> None:
    reference = filled(2)
    assert {reference.find(timestamp, 5.0) for timestamp in (0, 90, 6000)} == {NOTHING}
    assert reference.echo_at == 0.0
    assert reference.find(60, 6.0).index == 1
    assert reference.echo_at == 6.0


def test_three_seconds_are_kept() -> None:
    reference = filled(200)
    assert reference.find(60 * 150, 0.0) == NOTHING
    assert reference.find(60 * 151, 0.0).packets[0] == (151, b"151")


def test_all_is_forgotten_when_the_device_has_played_the_answer() -> None:
    reference = filled(5)
    reference.check(10.0, speaking=True)
    reference.check(10.0 + KEPT_SECONDS - 0.1, speaking=False)
    assert reference.find(60, 0.0).index == 1
    reference.check(10.0 + KEPT_SECONDS, speaking=False)
    assert reference.find(120, 0.0) == NOTHING

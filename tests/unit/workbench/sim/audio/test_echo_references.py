from fleet.workbench.sim.audio.echo_references import EchoReferences


def played(*timestamps: int) -> EchoReferences:
    references = EchoReferences(enabled=True)
    for timestamp in timestamps:
        references.played(timestamp)
    return references


def test_each_frame_carries_the_next_played_timestamp() -> None:
    references = played(60, 120)
    assert [references.pop() for _ in range(3)] == [60, 120, 0]


def test_with_more_than_three_waiting_a_frame_carries_none_but_takes_one() -> None:
    references = played(60, 120, 180, 240)
    assert [references.pop() for _ in range(5)] == [0, 120, 180, 240, 0]


def test_packets_without_timestamp_do_not_count() -> None:
    assert played(0, 0, 60).pop() == 60


def test_cleared_it_is_empty() -> None:
    references = played(60)
    references.clear()
    assert references.pop() == 0


def test_other_builds_carry_none() -> None:
    references = EchoReferences(enabled=False)
    references.played(60)
    assert references.pop() == 0

from fleet.roles.edge.transport.packet_pace import PacketPace


def admitted(pace: PacketPace, offered: int, now: float) -> int:
    """Return how many packets of those that are offered at one time may come."""
    count = 0
    while count < offered and pace.allows(now):
        pace.add(now)
        count += 1
    return count


def test_a_burst_may_come_and_then_one_packet_a_step() -> None:
    pace = PacketPace(0.05, 8, 0.0)
    assert admitted(pace, 100, 0.0) == 8
    assert admitted(pace, 100, 0.049) == 0
    assert [admitted(pace, 100, tick * 0.05) for tick in range(1, 5)] == [1] * 4


def test_a_pause_saves_no_more_than_a_burst() -> None:
    pace = PacketPace(0.05, 8, 0.0)
    assert admitted(pace, 100, 1000.0) == 8


def test_packets_that_came_beyond_it_are_made_up_for() -> None:
    pace = PacketPace(0.05, 8, 0.0)
    pace.add(0.0, 20)
    assert not pace.allows(0.6)
    assert admitted(pace, 100, 0.65) == 1

from fleet.edge.lobby import LONGEST_WAIT, MOST_PACKETS, MOST_SENDERS, Lobby

HERE = ("127.0.0.1", 1)


def test_kept_packets_are_handed_out_once_in_order() -> None:
    lobby = Lobby()
    lobby.keep(7, b"a", HERE, 0.0)
    lobby.keep(7, b"b", HERE, 0.1)
    assert lobby.claim(7, 0.2) == [(b"a", HERE, 0.0), (b"b", HERE, 0.1)]
    assert lobby.claim(7, 0.2) == []


def test_packets_that_waited_too_long_are_not_handed_out() -> None:
    lobby = Lobby()
    lobby.keep(7, b"a", HERE, 0.0)
    lobby.keep(7, b"b", HERE, 1.0)
    assert lobby.claim(7, LONGEST_WAIT + 0.5) == [(b"b", HERE, 1.0)]


def test_room_is_bounded_and_comes_back() -> None:
    lobby = Lobby()
    assert all(lobby.keep(0, b"a", HERE, 0.0) for _ in range(MOST_PACKETS))
    assert not lobby.keep(0, b"a", HERE, 0.0)
    assert all(lobby.keep(ssrc, b"a", HERE, 0.0) for ssrc in range(1, MOST_SENDERS))
    assert not lobby.keep(99, b"a", HERE, 0.0)
    assert lobby.keep(99, b"a", HERE, LONGEST_WAIT + 1)

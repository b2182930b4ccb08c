import struct
from collections import Counter
from types import SimpleNamespace
from typing import Any

from fleet.roles.edge.packet_router import PacketRouter
from fleet.roles.edge.registry import SessionRegistry

ADDRESS = ("192.0.2.1", 4000)


def datagram(ssrc: int, payload: bytes = b"abc") -> bytes:
    return struct.pack(">BBHIII", 1, 0, len(payload), ssrc, 0, 1) + payload


def session(ssrc: int) -> Any:
    """Return a session that notes what it receives."""
    received: list[bytes] = []
    opened = SimpleNamespace(ssrc=ssrc, device=f"d{ssrc}", session="s")
    return SimpleNamespace(
        opened=opened, received=received, receive=lambda header, data, *_: received.append(data), close=lambda: None
    )


def test_a_packet_goes_to_the_session_with_its_ssrc() -> None:
    registry, counters = SessionRegistry(), Counter[str]()
    router, one, other = PacketRouter(registry, counters), session(1), session(2)
    registry.add(one)
    registry.add(other)
    router.receive(datagram(2), ADDRESS, 0.0)
    assert (one.received, other.received, counters) == ([], [datagram(2)], {})


def test_a_packet_that_comes_before_its_session_waits_for_it() -> None:
    registry = SessionRegistry()
    router, one = PacketRouter(registry, Counter()), session(1)
    for payload in (b"a", b"b"):
        router.receive(datagram(1, payload), ADDRESS, 0.0)
    registry.add(one)
    router.admit(one, 0.1)
    assert one.received == [datagram(1, b"a"), datagram(1, b"b")]
    router.admit(one, 0.2)
    assert len(one.received) == 2


def test_a_packet_whose_session_never_comes_is_forgotten() -> None:
    registry = SessionRegistry()
    router, one = PacketRouter(registry, Counter()), session(1)
    router.receive(datagram(1), ADDRESS, 0.0)
    router.expire(100.0)
    registry.add(one)
    router.admit(one, 100.0)
    assert one.received == []


def test_what_is_no_packet_is_counted() -> None:
    counters = Counter[str]()
    router = PacketRouter(SessionRegistry(), counters)
    for data in (b"", b"short", b"\2" + datagram(1)[1:], datagram(1) + b"more"):
        router.receive(data, ADDRESS, 0.0)
    assert counters == {"too_short": 2, "malformed": 2}

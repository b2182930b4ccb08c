import socket

from fleet.workbench.cluster.port_allocator import PortAllocator
from fleet.workbench.local_servers.ports import LOOPBACK, choose


def test_no_port_is_given_twice_though_nobody_listens_yet() -> None:
    allocator, first = PortAllocator(), choose()
    given = [allocator.take(first) for _ in range(20)]
    assert len(set(given)) == 20
    assert given[0] == first


def test_a_neighbour_is_given_where_the_wanted_one_is_taken() -> None:
    with socket.create_server((LOOPBACK, choose())) as taken:
        wanted = taken.getsockname()[1]
        assert wanted < PortAllocator().take(wanted) < wanted + 50


def test_what_was_given_back_is_given_again() -> None:
    allocator, wanted = PortAllocator(), choose()
    allocator.release(allocator.take(wanted))
    assert allocator.take(wanted) == wanted


def test_udp_and_tcp_are_apart() -> None:
    allocator, wanted = PortAllocator(), choose()
    assert allocator.take(wanted) == wanted
    assert allocator.take(wanted, socket.SOCK_DGRAM) == wanted


def test_the_usual_ports_are_left_alone_on_request() -> None:
    wanted = choose()
    assert PortAllocator(prefer_first=False).take(wanted) != wanted

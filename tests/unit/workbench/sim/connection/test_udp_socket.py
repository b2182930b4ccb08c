import asyncio

import pytest

from fleet.workbench.sim.connection import udp_socket
from fleet.workbench.sim.connection.udp_socket import Address, UdpSocket


async def test_a_kernel_that_notes_no_arrival_is_good_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp_socket, "_SO_TIMESTAMPNS", 9999)  # no kernel has it
    heard = asyncio.get_running_loop().create_future()

    def receive(datagram: bytes, address: Address, port: int, arrived: float) -> None:
        heard.set_result(datagram)

    socket = UdpSocket(receive)
    socket.open("127.0.0.1")
    try:
        assert socket.send(b"audio", ("127.0.0.1", socket.port))
        async with asyncio.timeout(60):
            assert await heard == b"audio"
    finally:
        socket.close()

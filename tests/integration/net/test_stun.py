"""Asking a STUN server, over real UDP on the loopback."""

import asyncio
import socket
from functools import partial

import pytest

from fleet.adapters.net import stun
from fleet.ground.errors import ConfigError, Unavailable
from fleet.wire.stun import MappedAddress
from tests.support.ports import LOOPBACK, free_port
from tests.support.stun_server import message, stun_server, tell, xored

ask_stun = partial(stun.ask_stun, limit=240.0)


def free_udp() -> tuple[str, int]:
    return LOOPBACK, free_port(socket.SOCK_DGRAM)


async def test_the_servers_view_of_the_local_port_is_returned() -> None:
    local = free_udp()
    async with asyncio.timeout(240), stun_server(tell("203.0.113.7")) as server:
        assert await ask_stun(server.place, local) == MappedAddress("203.0.113.7", local[1])


async def test_a_name_is_resolved() -> None:
    async with asyncio.timeout(240), stun_server(tell()) as server:
        seen = await ask_stun(("localhost", server.place[1]), ("127.0.0.1", 0))
        assert seen.host == "127.0.0.1"


async def test_a_lost_request_is_sent_again_unchanged() -> None:
    silent = 2

    def late(request: bytes, asked: tuple[str, int]) -> bytes | None:
        return tell()(request, asked) if len(server.asked) > silent else None

    async with asyncio.timeout(240), stun_server(late) as server:
        await ask_stun(server.place, ("127.0.0.1", 0), first_wait=0.01)
        assert len(server.asked) >= silent + 1 and len(set(server.asked)) == 1


async def test_a_foreign_answer_is_passed_over() -> None:
    def twice(request: bytes, asked: tuple[str, int]) -> bytes:
        server._transport.sendto(message(0x0101, bytes(12), (0x0020, xored("192.0.2.66", 66))), asked)
        return message(0x0101, request[8:20], (0x0020, xored("192.0.2.1", 1)))

    async with asyncio.timeout(240), stun_server(twice) as server:
        assert await ask_stun(server.place, ("127.0.0.1", 0)) == MappedAddress("192.0.2.1", 1)


async def test_silence_ends_with_a_reason() -> None:
    async with asyncio.timeout(240), stun_server(lambda request, asked: None) as server:
        with pytest.raises(Unavailable, match="does not answer"):
            await ask_stun(server.place, ("127.0.0.1", 0), limit=0.1, first_wait=0.02)


async def test_a_refusal_ends_with_its_code() -> None:
    def refuse(request: bytes, asked: tuple[str, int]) -> bytes:
        return message(0x0111, request[8:20], (0x0009, b"\0\0\x03\x00"))

    async with asyncio.timeout(240), stun_server(refuse) as server:
        with pytest.raises(Unavailable, match="code 300"):
            await ask_stun(server.place, ("127.0.0.1", 0))


async def test_nobody_there_is_told() -> None:
    async with asyncio.timeout(240):
        with pytest.raises(Unavailable, match="STUN server"):
            await ask_stun(free_udp(), ("127.0.0.1", 0))


async def test_a_taken_port_is_told() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConfigError, match="cannot ask from UDP port"):
            await ask_stun(("127.0.0.1", 9), taken.getsockname())

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator

import pytest

from fleet.workbench.sim.messages.server_hello import ServerHello
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.scripted.audio import ScriptedAudio

LOOPBACK = "127.0.0.1"
NONCE = bytes.fromhex("01000000112233440000000000000000")
# The vector of the device contract, section 4.1.
KEY, PAYLOAD = bytes(range(16)), b"\x58" + b"\xaa" * 19
UPLINK = bytes.fromhex("01000014112233440000000000000001793287ab24ea30d90ae90a5df6da8d871b0d2878")
DOWNLINK = bytes.fromhex("01800014112233440000003c00000001e386b6ea5b6c5c47868c60863c1251eeaf5f3e46")


@pytest.fixture
def server() -> socket.socket:
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind((LOOPBACK, 0))
    receiver.settimeout(240)
    return receiver


def hello(server: socket.socket) -> ServerHello:
    return ServerHello("s1", LOOPBACK, server.getsockname()[1], KEY, NONCE)


@pytest.fixture
async def audio(server: socket.socket) -> AsyncIterator[ScriptedAudio]:
    port = ScriptedAudio(hello(server), find_profile("P1"))
    await port.open()
    yield port
    port.close()
    server.close()


async def test_an_uplink_packet_is_that_of_the_contract(audio: ScriptedAudio, server: socket.socket) -> None:
    audio.send(PAYLOAD)
    assert server.recv(2048) == UPLINK
    assert audio.headers == [(UPLINK[:16], 20)]


async def test_a_downlink_packet_is_read_as_in_the_contract(audio: ScriptedAudio, server: socket.socket) -> None:
    before = asyncio.get_running_loop().time()
    server.sendto(DOWNLINK, (LOOPBACK, audio.port))
    (one,) = await audio.expect(seconds=240)
    assert one.payload == PAYLOAD
    assert (one.kind, one.flags, one.length, one.timestamp, one.sequence) == (1, 0x80, 20, 60, 1)
    assert one.source == server.getsockname()
    assert before - 0.1 <= one.at <= asyncio.get_running_loop().time()


def until_arrivals_are_noted() -> None:
    """Wait until the kernel notes arrivals: it begins a moment after the first socket on the machine wants it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        own.bind((LOOPBACK, 0))
        own.settimeout(240)
        give_up = time.monotonic() + 240
        noted, read = 1, 0
        while noted > read:
            assert time.monotonic() < give_up
            own.sendto(b"", own.getsockname())
            read = time.time_ns()
            _, ((_, _, stamp),), _, _ = own.recvmsg(1, 64)
            seconds, nanoseconds = struct.unpack("@ll", stamp)
            noted = seconds * 1_000_000_000 + nanoseconds


async def test_a_datagram_counts_from_its_arrival_not_from_its_reading(
    audio: ScriptedAudio, server: socket.socket
) -> None:
    until_arrivals_are_noted()
    loop = asyncio.get_running_loop()
    server.sendto(DOWNLINK, (LOOPBACK, audio.port))
    sent = loop.time()
    while loop.time() - sent < 0.6:
        """The loop is held up."""
    (one,) = await audio.expect(seconds=240)
    assert one.at - sent < 0.3


async def test_numbers_go_on_across_an_explicit_one(audio: ScriptedAudio, server: socket.socket) -> None:
    audio.send(b"a")
    audio.send(b"b", sequence=0xFFFF_FFFF, timestamp=7)
    audio.send(b"c")
    headers = [server.recv(2048)[8:16] for _ in range(3)]
    assert headers == [bytes.fromhex(text) for text in ("0000000000000001", "00000007ffffffff", "0000000000000002")]


async def test_a_hello_begins_counters_and_keys_anew(audio: ScriptedAudio, server: socket.socket) -> None:
    audio.send(b"a")
    audio.rekey(ServerHello("s2", LOOPBACK, server.getsockname()[1], bytes(16), NONCE))
    assert (audio.sent, audio.headers) == (0, [])
    server.sendto(DOWNLINK, (LOOPBACK, audio.port))
    (one,) = await audio.expect(seconds=240)
    assert one.epoch == 2
    assert one.payload != PAYLOAD


async def test_after_rebinding_both_ports_are_heard(audio: ScriptedAudio, server: socket.socket) -> None:
    old = audio.port
    new = audio.rebind()
    audio.send(PAYLOAD)
    assert server.recvfrom(2048)[1][1] == new == audio.port != old
    for port in (old, new):
        server.sendto(DOWNLINK, (LOOPBACK, port))
    assert {one.port for one in await audio.expect(2, seconds=240)} == {old, new}


async def test_a_stranger_sends_from_another_address(audio: ScriptedAudio, server: socket.socket) -> None:
    own = audio.port
    stranger = audio.stranger()
    stranger.send(b"x" * 40, audio.server)
    _, sender = server.recvfrom(2048)
    assert sender[1] == stranger.port != own == audio.port
    server.sendto(DOWNLINK, sender)
    (one,) = await audio.expect(seconds=240)
    assert one.port == stranger.port


async def test_short_datagrams_are_kept_without_a_payload(audio: ScriptedAudio, server: socket.socket) -> None:
    for size in (0, 3, 16):
        server.sendto(DOWNLINK[:size], (LOOPBACK, audio.port))
    got = await audio.expect(3, seconds=240)
    assert [(len(one.raw), one.payload) for one in got] == [(0, b""), (3, b""), (16, b"")]
    assert got[0].kind == -1


async def test_waiting_ends_when_nothing_comes(audio: ScriptedAudio) -> None:
    assert await audio.expect(seconds=0.01) == []

"""Hostile datagrams, over real UDP, to an edge with one session that nobody may disturb.

What one packet leads to is in tests/unit/roles/edge/listening/test_uplink.py and tests/unit/wire/test_replay.py.
"""

import asyncio
import os
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fleet.roles.edge.transport.allowance import BURST, RATE
from fleet.roles.edge.transport.early_packets import MOST_PACKETS
from tests.support.descriptors import Descriptors
from tests.support.edge_stage import LIMIT, PROOF, Device, Stage, crypt, on_stage, opened, opus_like, settle
from tests.support.raw_udp import may_forge, send_forged
from tests.support.socket_forms import socket_form

SSRC = 0x11223344
FULL_JUMP = 0xFFFFFFFF
LARGEST = 65_507
SOME = 500

__all__ = ["socket_form"]


def header(sequence: int, payload: bytes, ssrc: int = SSRC, flags: int = 0, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    return struct.pack(">BBHIII", 1, flags, size, ssrc, 0, sequence) + payload


@pytest.fixture(autouse=True)
def _edge_may_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a standstill an edge would apologise to who was listening: on a busy machine that is not what is tested."""
    monkeypatch.setattr("fleet.roles.edge.app.STOPPED_SECONDS", LIMIT)


@asynccontextmanager
async def undisturbed() -> AsyncIterator[tuple[Stage, Device]]:
    """Give an edge and a device that listens and has been heard.

    After the block the device is still heard, is still spoken to where it is, and nothing more is open.
    """
    async with on_stage() as stage:
        device = await stage.open(SSRC)
        await stage.listen()
        device.be_silent(PROOF)
        await stage.received(PROOF)
        (session,) = stage.edge._registry
        home, here = session.parts.stream.address, Descriptors()
        assert home
        yield stage, device
        await settle()
        assert session.parts.stream.address == home
        assert stage.edge.load == 1
        heard = len(stage.asr.heard)
        device.say()
        await stage.until(lambda: len(stage.asr.heard) > heard)
        device.received.clear()
        await stage.speak("t9", "still here")
        assert any(b"still here" in packet for packet in await device.packets(3))
        await here.no_more(spare=4)


@asynccontextmanager
async def attacker(stage: Stage) -> AsyncIterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        forger.connect(("127.0.0.1", stage.edge.port))
        yield forger


async def counted(stage: Stage, reason: str, times: int) -> None:
    async with asyncio.timeout(LIMIT):
        while stage.edge.counters[reason] < times:
            await asyncio.sleep(0.002)
    assert stage.edge.counters[reason] == times


async def flood(stage: Stage, forger: socket.socket, datagrams: list[bytes]) -> None:
    """Send all, no faster than the edge takes them, so that none is lost in the kernel."""
    for at in range(0, len(datagrams), 50):
        before = stage.edge.counters["received"]
        some = datagrams[at : at + 50]
        for datagram in some:
            forger.send(datagram)
        await stage.received(before + len(some))


@pytest.mark.skipif(not may_forge(), reason="needs the right to open raw sockets")
async def test_datagrams_from_port_0_are_dropped() -> None:
    async with undisturbed() as (stage, device):
        for payload in (b"", b"\1", device.seal(opus_like(7)), os.urandom(1400)):
            send_forged(payload, 0, stage.edge.port)
        await counted(stage, "port_zero", 4)


async def test_a_datagram_from_port_0_is_dropped_also_where_none_can_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage(udp_native=False) as stage:
        device = await stage.open(SSRC)
        audio = stage.edge._services.socket
        sealed = [device.seal(opus_like(1)), device.seal(opus_like(2))]

        def receive(buffer: memoryview) -> tuple[int, tuple[str, int]]:
            if not sealed:
                raise BlockingIOError
            datagram = sealed.pop()
            buffer[: len(datagram)] = datagram
            return len(datagram), ("127.0.0.1", 0)

        with monkeypatch.context() as patch:
            patch.setattr(audio.datagrams, "_receive", receive)
            patch.setattr(audio, "_schedule", lambda now: None)
            audio._tick()
        assert stage.edge.counters["received"] == 2
        assert stage.edge.counters["port_zero"] == 2
        assert not next(iter(stage.edge._registry)).parts.stream.address


async def test_datagrams_without_a_byte_or_with_64_kilobytes_are_dropped() -> None:
    async with undisturbed() as (stage, _), attacker(stage) as forger:
        huge = [header(9, bytes(LARGEST - 16), length=at) for at in (0, 2032, LARGEST - 16)]
        await flood(stage, forger, [b"", *huge, header(9, b"\x58" * 1400)[:15]])
        assert stage.edge.counters["too_short"] == 2
        assert stage.edge.counters["malformed"] + stage.edge.counters["not_audio"] == 3


async def test_random_datagrams_are_dropped() -> None:
    chooser = random.Random(5)
    async with undisturbed() as (stage, _), attacker(stage) as forger:
        await flood(stage, forger, [chooser.randbytes(chooser.randrange(200)) for _ in range(SOME)])
        dropped = ("too_short", "malformed", "unknown_ssrc")
        stage.edge._router.expire(asyncio.get_running_loop().time() + 3.0)
        assert sum(stage.edge.counters[reason] for reason in dropped) == SOME


async def test_guessing_an_ssrc_gets_nowhere_and_fills_nothing() -> None:
    chooser = random.Random(6)
    async with undisturbed() as (stage, _), attacker(stage) as forger:
        payload = chooser.randbytes(80)
        await flood(stage, forger, [header(1, payload, chooser.randrange(1 << 32)) for _ in range(SOME)])
        # They wait for sessions for two seconds.
        stage.edge._router.expire(asyncio.get_running_loop().time() + 3.0)
        assert stage.edge.counters["unknown_ssrc"] == SOME
        assert not stage.edge._router._early._packets
        assert stage.edge.load == 1
        forger.setblocking(False)
        with pytest.raises(BlockingIOError):
            forger.recv(1)


async def test_who_knows_an_ssrc_before_its_session_opens_keeps_no_packet_of_the_device_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fleet.roles.edge.transport.early_packets.LONGEST_WAIT", LIMIT)
    async with on_stage() as stage:
        device = await stage.device(SSRC)
        async with attacker(stage) as forger:
            await flood(stage, forger, [header(1 + number, os.urandom(80)) for number in range(MOST_PACKETS)])
        device.be_silent(PROOF)
        await stage.received(MOST_PACKETS + PROOF)
        await stage.send("session_opened", **opened(SSRC))
        (session,) = stage.edge._registry
        assert session.parts.stream.newest == PROOF
        await stage.speak("t1", "where it is")
        assert await device.packets(3)


async def test_a_known_ssrc_without_the_key_moves_nobody_and_is_seldom_heard() -> None:
    chooser = random.Random(7)
    async with undisturbed() as (stage, device), attacker(stage) as forger:
        heard = len(stage.audio_input.seen)
        await flood(stage, forger, [header(device.sequence + 1, chooser.randbytes(80)) for _ in range(20)])
        passed = len(stage.audio_input.seen) - heard
        assert passed <= 3, "one in some twenty looks like audio, and only the first of a number passes"


async def test_one_packet_from_elsewhere_moves_nobody_though_it_is_right() -> None:
    async with undisturbed() as (stage, device), attacker(stage) as forger:
        await flood(stage, forger, [device.seal(opus_like(3))])
        await stage.speak("t1", "where it was")
        assert await device.packets(3)
        forger.setblocking(False)
        with pytest.raises(BlockingIOError):
            forger.recv(1)
        await stage.until(lambda: not stage.edge._registry.by_ssrc[SSRC].parts.turn_taking.busy)
        await stage.listen()


async def test_the_largest_sequence_number_mutes_nobody() -> None:
    async with undisturbed() as (stage, device), attacker(stage) as forger:
        before = stage.edge.counters["jump"]
        payload = opus_like(4)
        right = device.seal(payload, sequence=FULL_JUMP)
        await flood(stage, forger, [right, header(FULL_JUMP, os.urandom(80)), header(FULL_JUMP - 1, b"")])
        device.send_raw(right)
        await counted(stage, "jump", before + 4)


async def test_what_was_sent_before_is_not_heard_again() -> None:
    async with undisturbed() as (stage, device), attacker(stage) as forger:
        recorded = [device.seal(opus_like(number, 0.05)) for number in range(20)]
        for datagram in recorded:
            device.send_raw(datagram)
        await stage.received(PROOF + 20)
        seen, before = len(stage.audio_input.seen), stage.edge.counters["replay"]
        await flood(stage, forger, recorded * 3)
        assert len(stage.audio_input.seen) == seen
        assert stage.edge.counters["replay"] == before + 60


async def test_what_the_server_sent_is_not_taken_back() -> None:
    async with undisturbed() as (stage, device), attacker(stage) as forger:
        await stage.speak("t1", "mirror")
        await device.packets(3)
        await stage.until(lambda: not stage.edge._registry.by_ssrc[SSRC].parts.turn_taking.busy)
        await flood(stage, forger, list(device.received))
        assert stage.edge.counters["flags"] == len(device.received)
        await stage.listen()


async def test_a_flood_with_the_key_is_cut_to_what_a_device_sends() -> None:
    clock = asyncio.get_running_loop().time
    began = clock()
    async with on_stage() as stage:
        device = await stage.open(SSRC)
        await stage.listen()
        async with attacker(stage) as forger:
            await flood(stage, forger, [device.seal(opus_like(0, 0.05)) for _ in range(SOME)])
        allowed = BURST + RATE * (clock() - began)
        assert stage.edge.counters["rate"] + stage.edge.counters["jump"] >= SOME - allowed
        assert len(stage.audio_input.seen) <= allowed


def test_the_first_byte_and_the_header_are_no_key() -> None:
    """What the protocol cannot give: whoever knows a payload can change it, for nothing in a packet proves it."""
    said, wished = opus_like(1), opus_like(2)
    head = header(1, b"")[:2] + len(said).to_bytes(2) + header(1, b"")[4:]
    sealed = crypt(head, said)
    forged = bytes(one ^ two ^ three for one, two, three in zip(sealed, said, wished, strict=True))
    assert crypt(head, forged) == wished

import asyncio
import math
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from fleet.roles.edge.transport.datagrams import Address, Batch
from fleet.roles.edge.transport.socket import AudioSocket
from fleet.roles.edge.transport.stall_detector import StallDetector
from fleet.roles.edge.transport.timer_wheel import TICK, tick_of
from tests.support.edge_stage import LIMIT
from tests.support.socket_forms import NATIVE_FORMS
from tests.support.virtual_time import elapse

HOST = "127.0.0.1"


class Taker:
    """Keeps what it is given."""

    def __init__(self, taken: list[tuple[bytes, Address]]) -> None:
        self._taken = taken

    def take(self, batches: Iterable[Batch], now: float) -> None:
        for usual, others in batches:
            assert not list(usual), "no stream was opened"
            self._taken += others


@contextmanager
def bound(taken: list[tuple[bytes, Address]], *, native: bool = False) -> Iterator[AudioSocket]:
    stalls = StallDetector(asyncio.get_running_loop().time(), lambda: None)
    audio = AudioSocket(Taker(taken), Counter(), stalls, native=native)
    audio.bind(HOST, 0)
    try:
        yield audio
    finally:
        audio.close()


def planned(audio: AudioSocket, now: float) -> float:
    """Return the time of the tick after one that began at `now`."""
    audio._schedule(now)
    assert isinstance(audio._handle, asyncio.TimerHandle)
    audio._handle.cancel()
    return audio._handle.when()


async def test_ticks_lie_on_a_grid_whatever_the_loop_is_late() -> None:
    with bound([]) as audio:
        for late in (0.0, 0.1, 0.5):
            assert math.isclose(planned(audio, (1000 + late) * TICK), 1001 * TICK)


async def test_tick_that_was_late_is_not_followed_at_once() -> None:
    with bound([]) as audio:
        for late in (0.6, 0.99):
            assert math.isclose(planned(audio, (1000 + late) * TICK), (1000.5 + late) * TICK)


@pytest.mark.parametrize("native", NATIVE_FORMS)
async def test_packets_are_kept_apart_though_they_share_a_buffer(native: bool) -> None:
    taken: list[tuple[bytes, Address]] = []
    with bound(taken, native=native) as audio, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        device.bind((HOST, 0))
        sent = [b"first and longest", b"second", b"", b"x" * 1200]
        for datagram in sent:
            device.sendto(datagram, (HOST, audio.port))
        async with asyncio.timeout(LIMIT):
            while len(taken) < len(sent):
                await elapse(0.002)
        assert [datagram for datagram, _ in taken] == sent
        assert {address for _, address in taken} == {device.getsockname()}


def test_tick_of_a_time_on_the_grid_is_its_own() -> None:
    assert all(tick_of(number * TICK) == number for number in range(10_000_000, 10_001_000))
    assert tick_of(1000.5 * TICK) == 1000

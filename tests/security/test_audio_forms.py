"""Both forms of the audio socket use the same packets, whatever somebody sends between those of the device."""

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

import pytest

from fleet.roles.edge.transport.datagrams import NativeDatagrams, has_native
from fleet.roles.edge.transport.uplink_stream import UplinkStream
from tests.support.audio_air import KEY, SSRC, STOCK, TOCS, Air, Sight, flip_renumbered, noise, seal, speech
from tests.support.ports import LOOPBACK

FRAME = 0.06

pytestmark = pytest.mark.skipif(not has_native(), reason="the native part is not built")


class NativeAir(Air):
    """`Air` over the native part and real UDP, where each address is a socket of its own."""

    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self._stack = stack
        self._listener = self._open()
        self._datagrams = NativeDatagrams(self._listener, Counter())
        self._sockets = {self._listener.getsockname(): self._listener}
        self.stream = UplinkStream(self._datagrams.channel(KEY, SSRC, STOCK.frame_ms), STOCK, self.drops, 0.0)
        self.usual = 0

    def address(self) -> tuple[str, int]:
        """Return a new address to send from."""
        opened = self._open()
        self._sockets[opened.getsockname()] = opened
        return opened.getsockname()

    def take(self, datagram: bytes, address: tuple[str, int], now: float) -> None:
        self._sockets[address].sendto(datagram, self._listener.getsockname())
        for usual, others in self._datagrams.read(now):
            for _, sequence, _, payload in usual:
                self.usual += 1
                self.use(sequence, payload, now)
            for received, sender in others:
                super().take(received, sender, now)

    def _open(self) -> socket.socket:
        opened = self._stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        opened.setblocking(False)
        opened.bind((LOOPBACK, 0))
        return opened


@pytest.fixture
def native() -> Iterator[NativeAir]:
    with ExitStack() as stack:
        yield NativeAir(stack)


def test_a_packet_that_moves_the_stream_back_ends_what_the_native_part_passes_on(native: NativeAir) -> None:
    """Somebody goes on in a pause of the device and has its stream until the device is seen to go on, too.

    From then on its copies are changed; nobody may hear them.
    """
    plain, home, copier = Air(), native.address(), native.address()
    for number in range(1, 400):
        now = number * FRAME
        for air in (plain, native):
            if number > 60:
                copy = seal(speech(number), number)
                returned = len(air.homes) == 4
                air.take(copy[:20] + bytes(len(copy) - 20) if returned else copy, copier, now - 0.02)
            if not 40 < number <= 80:
                air.send([number], now, home)
    assert native.homes == plain.homes == [None, home, copier, home]
    assert native.numbers == plain.numbers
    assert set(range(200, 400)) <= set(native.numbers)


@pytest.mark.parametrize("seed", range(20))
def test_both_forms_use_the_same_packets(native: NativeAir, seed: int) -> None:
    random, plain = Random(seed), Air()
    home, *others = (native.address() for _ in range(4))
    seen = [seal(speech(0), 0)]
    for number in range(1, 600):
        now = number * FRAME
        datagram = seal(speech(number, TOCS[60] if random.random() < 0.98 else TOCS[20]), number)
        seen = [*seen, datagram][-50:]
        if random.random() < 0.01:
            home, others[0] = others[0], home
        sent = [(datagram, home)] if random.random() < 0.95 else []
        for _ in range(random.choice((0, 0, 1, 3))):
            sight = Sight(number, seen)
            forged = random.choice((noise(random, number + 1), random.choice(seen), flip_renumbered(random, sight)))
            sent.insert(random.randint(0, len(sent)), (forged, random.choice([home, *others])))
        for one, address in sent:
            plain.take(one, address, now)
            native.take(one, address, now)
    assert native.usual > 0
    assert native.homes == plain.homes
    assert native.numbers == plain.numbers
    assert native.drops == plain.drops

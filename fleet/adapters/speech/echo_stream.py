"""One stream's echo cancellation: only while the device plays something, and a bounded number of streams at once."""

from collections.abc import Callable
from weakref import WeakSet

from fleet.adapters.speech.opus import Decoder, OpusError
from fleet.core.ports import ASR_RATE, EchoCanceller

MOST_CANCELLERS = 32
"""Streams that have a canceller: together they take half of a core while all their devices speak."""
_TAIL_FRAMES = 8
"""Frames after the last that was played in which there may be an echo: 480 ms."""


class EchoPool:
    """Makes the cancellers of a process.

    Args:
        make: Makes one.
        most: Streams that have one at the same time.
    """

    def __init__(self, make: Callable[[], EchoCanceller], most: int = MOST_CANCELLERS) -> None:
        self._make = make
        self._most = most
        self._lent: WeakSet[EchoCanceller] = WeakSet()

    def lend(self) -> EchoCanceller | None:
        """Return a canceller, which comes back when nobody refers to it; None if too many are lent."""
        if len(self._lent) >= self._most:
            return None
        canceller = self._make()
        self._lent.add(canceller)
        return canceller


class EchoStream:
    """Removes the echo from one stream; used by one thread at a time. Makes the canceller when it is first needed.

    Args:
        pool: Has the cancellers.
    """

    def __init__(self, pool: EchoPool) -> None:
        self._pool = pool
        self._canceller: EchoCanceller | None = None
        self._decoder = Decoder(ASR_RATE)
        self._tail = 0

    def process(self, near: bytes, played: bytes) -> tuple[bytes, bool]:
        """Return the microphone's audio without the echo, and whether there may be speech in it.

        Without a canceller it is silence while the device plays something, as if it could not listen meanwhile.

        Args:
            near: A frame of the microphone at 16 kHz.
            played: The packet that the device had just played; empty if there was none.
        """
        self._tail = _TAIL_FRAMES if played else max(0, self._tail - 1)
        if not self._tail:
            return near, True
        if self._canceller is None:
            self._canceller = self._pool.lend()
        far = self._decode(played)
        if self._canceller is None or len(far) > len(near):
            return bytes(len(near)), False
        return self._canceller.process(near, far.ljust(len(near), b"\0"))

    def _decode(self, packet: bytes) -> bytes:
        try:
            return self._decoder.decode(packet) if packet else b""
        except OpusError:
            return b""

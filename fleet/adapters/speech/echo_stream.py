"""One stream's echo cancellation: only while the device plays something, and a bounded number of streams at once."""

from collections.abc import Callable
from weakref import WeakSet

import numpy as np

from fleet.adapters.speech.echo_canceller import EchoCanceller
from fleet.adapters.speech.echo_far import FRAME, Samples
from fleet.adapters.speech.opus import Decoder, OpusError
from fleet.core.ports import ASR_RATE
from fleet.core.reference import Played

MOST_CANCELLERS = 32
"""Streams that have a canceller: together they take half of a core while all their devices speak."""
PLAYING_SECONDS = 2.0
"""A stream whose device has played something within this time keeps its canceller, whoever wants it."""
_TAIL_FRAMES = 8
"""Frames after the last that was played in which there may be an echo: 480 ms."""


class EchoPool:
    """Makes the cancellers of a process; used by one thread at a time.

    Args:
        make: Makes one.
        most: Streams that have one at the same time.
    """

    def __init__(self, make: Callable[[], EchoCanceller] = EchoCanceller, most: int = MOST_CANCELLERS) -> None:
        self._make = make
        self._most = most
        self._lent: WeakSet[EchoStream] = WeakSet()

    def lend(self, stream: "EchoStream") -> EchoCanceller | None:
        """Return a canceller for a stream whose device plays something, until nobody refers to the stream.

        If none is left, the stream that has not played for the longest time loses its own. None if all of them play.
        """
        lent = list(self._lent)
        if len(lent) >= self._most:
            longest = min(lent, key=lambda one: one.played_at)
            if stream.played_at - longest.played_at < PLAYING_SECONDS:
                return None
            longest.give_up()
            self._lent.discard(longest)
        self._lent.add(stream)
        return self._make()


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
        self.played_at = 0.0
        """When its device last said that it plays something."""

    def give_up(self) -> None:
        """Go on without a canceller until the device plays something again."""
        self._canceller = None

    def process(self, near: bytes, played: Played | None) -> tuple[bytes, bool]:
        """Return the microphone's audio without the echo, and whether there may be speech in it.

        Without a canceller it is silence while the device plays something, as if it could not listen meanwhile.

        Args:
            near: A frame of the microphone at 16 kHz.
            played: What the device had just played; None if the frame was lost.
        """
        if played and played.index:
            self._tail, self.played_at = _TAIL_FRAMES, played.at
            self._canceller = self._canceller or self._pool.lend(self)
        else:
            self._tail = max(0, self._tail - 1)
        if not self._tail:
            return near, True
        if self._canceller is None or len(near) != 2 * FRAME:
            return bytes(len(near)), False
        if played:
            self._add_sounds(self._canceller, played)
        return self._canceller.process(near, played.index if played else None)

    def _add_sounds(self, canceller: EchoCanceller, played: Played) -> None:
        for number, packet in played.packets:
            if number > canceller.newest:
                canceller.add(number, self._decode(packet))

    def _decode(self, packet: bytes) -> Samples:
        try:
            sound = np.frombuffer(self._decoder.decode(packet), "<i2")[:FRAME]
        except OpusError:
            sound = np.zeros(0, np.int16)
        return np.pad(sound.astype(np.float32) / np.float32(32768), (0, FRAME - len(sound)))

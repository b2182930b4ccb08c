"""A probe's microphone: frames in real time, silence unless something is said."""

import asyncio
from collections.abc import Callable

from fleet.workbench.sim.audio.encoder import SAMPLE_RATE, UplinkEncoder
from fleet.workbench.sim.audio.microphone import SEND_QUEUE
from fleet.workbench.sim.profiles.profile import OpusApplication

SAMPLE_BYTES = 2


class Microphone:
    """Makes a packet every frame time while it is on.

    A frame that is late is made up for at once, as by a board whose main loop was held up: speech keeps its pace.

    Args:
        send: Takes the packets; a check may put something else in its place.
        frame_ms: Milliseconds a packet.
        application: What the encoder is tuned for.
    """

    def __init__(self, send: Callable[[bytes], None], frame_ms: int, application: OpusApplication = "audio") -> None:
        self.send = send
        self.frame_ms = frame_ms
        self.on = False
        self._encoder = UplinkEncoder(frame_ms, application)
        self._waiting = bytearray()
        self._said = asyncio.Event()
        self._said.set()

    def say(self, pcm: bytes) -> None:
        """Say this after what is being said already."""
        self._waiting.extend(pcm)
        if self._waiting:
            self._said.clear()

    def hush(self) -> None:
        """Say no more."""
        self._waiting.clear()
        self._said.set()

    async def said(self) -> None:
        """Wait until everything was said."""
        await self._said.wait()

    async def run(self) -> None:
        """Capture for ever; while it is off, no frame is made and nothing that is to be said is lost."""
        loop = asyncio.get_running_loop()
        period = self.frame_ms / 1000
        due = loop.time()
        while True:
            if self.on:
                self.send(self._encoder.encode(self._frame()))
            due = max(due + period, loop.time() - SEND_QUEUE * period)
            await asyncio.sleep(max(0.0, due - loop.time()))

    def _frame(self) -> bytes:
        size = self._encoder.frame_bytes
        frame = bytes(self._waiting[:size])
        del self._waiting[:size]
        if not self._waiting:
            self._said.set()
        return frame.ljust(size, b"\0")


def silence(seconds: float) -> bytes:
    """Return PCM at 16 kHz."""
    return bytes(round(seconds * SAMPLE_RATE) * SAMPLE_BYTES)

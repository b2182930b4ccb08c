"""Streams of Opus packets for ears, made from recordings and tones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np

from fleet.adapters.speech.audio_input import AudioInput, AudioInputStream, VadFrame
from fleet.adapters.speech.opus import Encoder
from fleet.wire.messages import AudioFormat

UPLINK = AudioFormat(16_000, 60)


def packets(pcm: bytes, frame_ms: int = 60) -> list[bytes]:
    """Return 16 kHz audio as packets; a rest shorter than a packet is left out."""
    encoder = Encoder(16_000, frame_ms)
    size = encoder.frame_bytes
    return [encoder.encode(pcm[start : start + size]) for start in range(0, len(pcm) - size + 1, size)]


def tone(seconds: float, hertz: float = 440.0) -> bytes:
    return (np.sin(np.arange(int(seconds * 16_000)) / 16_000 * 2 * np.pi * hertz) * 8000).astype("<i2").tobytes()


class Listener:
    """Collects what one ear hears."""

    def __init__(self, ears: AudioInput, uplink: AudioFormat = UPLINK, *, echoes: bool = False) -> None:
        self.frames: list[VadFrame] = []
        self._more = asyncio.Event()
        self.ear: AudioInputStream = ears.open(uplink, self, echoes=echoes)

    def on_frame(self, frame: VadFrame) -> None:
        self.frames.append(frame)
        self._more.set()

    async def wait(self, count: int) -> list[VadFrame]:
        """Return the frames when there are so many."""
        async with asyncio.timeout(240):
            while len(self.frames) < count:
                self._more.clear()
                await self._more.wait()
        return self.frames


@asynccontextmanager
async def running(ears: AudioInput) -> AsyncIterator[AudioInput]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(ears.run())
        try:
            yield ears
        finally:
            task.cancel()

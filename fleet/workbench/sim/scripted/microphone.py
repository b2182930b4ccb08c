"""The microphone of a scripted device: that of the simulated one, without a main loop between it and the socket."""

import asyncio
from collections.abc import Callable

from fleet.workbench.sim.audio.echo_references import EchoReferences
from fleet.workbench.sim.audio.encoder import SAMPLE_RATE, UplinkEncoder
from fleet.workbench.sim.audio.microphone import Microphone
from fleet.workbench.sim.profiles.profile import OpusApplication
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.records.loudness import SAMPLE_BYTES


class _Speech:
    """A `UserVoice` that is never over: PCM is added at any time, and silence is captured when there is none."""

    def __init__(self) -> None:
        self.waiting = bytearray()
        self.said = asyncio.Event()
        self.said.set()
        self.began: float | None = None
        self.ended: float | None = None
        self.over = False

    def take(self, size: int, captured: float) -> bytes:
        frame = bytes(self.waiting[:size])
        del self.waiting[:size]
        if not self.waiting:
            self.said.set()
        return frame.ljust(size, b"\0")


class ScriptedMicrophone(Microphone):
    """Sends each packet as soon as it is captured.

    A stalled process makes up for the frames that it missed, as a board whose main loop was held up does.

    Args:
        send: Takes the packets; a test may replace it.
        frame_ms: Milliseconds a packet.
        application: What the encoder is tuned for.
        clock: Seconds on the clock of the event loop.
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        frame_ms: int,
        application: OpusApplication = "audio",
        clock: Callable[[], float] | None = None,
    ) -> None:
        encoder, references = UplinkEncoder(frame_ms, application), EchoReferences(enabled=False)
        own_clock = clock or asyncio.get_running_loop().time
        super().__init__(encoder, references, own_clock, ChangeSignal(), lambda: None)
        self.send = send
        self.frame_ms = frame_ms
        self._speech = _Speech()

    @property
    def on(self) -> bool:
        """Whether frames are captured; what is to be said waits until they are."""
        return self.running

    @on.setter
    def on(self, wanted: bool) -> None:
        if wanted and not self.running:
            self.start(0.0)
            self.hear(self._speech)
        elif not wanted and self.running:
            self.stop()
            self._speech.over = False

    def say(self, pcm: bytes) -> None:
        """Say this after what is being said already."""
        self._speech.waiting.extend(pcm)
        if pcm:
            self._speech.said.clear()

    def hush(self) -> None:
        """Say no more."""
        self._speech.waiting.clear()
        self._speech.said.set()

    async def said(self) -> None:
        """Wait until everything was said."""
        await self._speech.said.wait()

    def advance(self, now: float) -> None:
        """Capture and send what is due by now."""
        super().advance(now)
        while packet := self.pop():
            self.send(packet.payload)


def silence(seconds: float) -> bytes:
    """Return PCM at 16 kHz."""
    return bytes(round(seconds * SAMPLE_RATE) * SAMPLE_BYTES)

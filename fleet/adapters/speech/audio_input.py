"""Listening to many streams at once: Opus decoding and voice activity in one thread, in batches, off the event loop.

Packets that arrive while a batch runs make up the next one, so batches grow with the load and the loop is woken once a
batch. All counting happens on the loop; decoders and states are touched in the thread alone.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from fleet.adapters.speech.engines import Engine
from fleet.adapters.speech.opus import Decoder, OpusError
from fleet.adapters.speech.vad_silero import RATE, WINDOW, Samples, SileroVad, VadState
from fleet.ground.errors import ProviderError
from fleet.wire.messages import AudioFormat

log = logging.getLogger(__name__)

_DTX_BYTES = 3
"""Packets up to this long hold no audio: silence that the encoder did not send."""
_BATCH_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class VadFrame:
    """One packet, heard."""

    pcm: bytes
    """16 kHz mono s16le, as long as the packet; zeros for one that holds no audio or is damaged."""
    speech: float
    """Highest probability of speech in the 32 ms windows that ended in the packet; the last known one if none did."""


@dataclass(slots=True)
class _Stream:
    """What the thread knows of a stream."""

    silence: bytes
    decoder: Decoder = field(default_factory=lambda: Decoder(RATE))
    state: VadState = field(default_factory=VadState)
    rest: Samples = field(default_factory=lambda: np.zeros(0, np.float32))

    def forget(self) -> None:
        self.state = VadState()
        self.rest = self.rest[:0]

    def decode(self, packet: bytes) -> bytes:
        if len(packet) <= _DTX_BYTES:
            return self.silence
        try:
            return self.decoder.decode(packet)
        except OpusError:
            return self.silence

    def cut(self, pcm: bytes) -> list[Samples]:
        """Return the windows that end in this audio; what is left begins the next one."""
        samples: Samples = np.concatenate((self.rest, np.frombuffer(pcm, "<i2").astype(np.float32) / 32768))
        whole = len(samples) // WINDOW * WINDOW
        self.rest = samples[whole:]
        return [samples[start : start + WINDOW] for start in range(0, whole, WINDOW)]


@dataclass(slots=True, eq=False)
class _DecodedPacket:
    """A packet on its way through the thread."""

    stream: "AudioInputStream"
    pcm: bytes
    state: VadState
    windows: deque[Samples]
    speech: list[float] = field(default_factory=list)

    def judge(self) -> tuple["AudioInputStream", VadFrame]:
        """Return the frame; packets of a stream in their order."""
        self.state.speech = max(self.speech, default=self.state.speech)
        return self.stream, VadFrame(self.pcm, self.state.speech)


class FrameListener(Protocol):
    """Whoever listens to a stream."""

    def on_frame(self, frame: VadFrame) -> None:
        """Take the next packet as it was heard; called on the event loop, in the order of feeding."""


class AudioInputStream:
    """One stream; made by `AudioInput.open`, used on the event loop."""

    def __init__(self, audio_input: "AudioInput", uplink: AudioFormat, listener: FrameListener) -> None:
        self._input = audio_input
        self.listener = listener
        self._stream = _Stream(bytes(RATE * uplink.frame_ms // 1000 * 2))
        self.silence = VadFrame(self._stream.silence, 0.0)
        """Stands for a packet that could not be heard."""
        self.waiting = 0
        """Packets that were fed and not heard yet."""
        self.closed = False
        self.dropped = 0
        """Packets that were fed in vain."""

    def feed(self, packet: bytes) -> bool:
        """Hand in the stream's next packet; never blocks. False: dropped and counted, because too many wait."""
        if self.closed or self._input.is_full(self.waiting):
            self.dropped += 1
            return False
        self._input.queue.append((self, packet))
        self._input.fed.set()
        self.waiting += 1
        return True

    def reset(self) -> None:
        """Begin a new utterance with the next packet: forget the voice activity so far, keep the decoder."""
        queue = self._input.queue
        # Two in a row are one, so resets cannot fill the queue.
        if not self.closed and not (queue and queue[-1] == (self, None)):
            queue.append((self, None))
            self._input.fed.set()

    def close(self) -> None:
        """Hear nothing more, not even what was fed before."""
        self.closed = True

    def process(self, packet: bytes | None) -> _DecodedPacket | None:
        """Decode a packet, or forget the utterance when there is none; in the thread."""
        if packet is None:
            self._stream.forget()
            return None
        if self.closed:
            return _DecodedPacket(self, b"", self._stream.state, deque())
        pcm = self._stream.decode(packet)
        return _DecodedPacket(self, pcm, self._stream.state, deque(self._stream.cut(pcm)))


_Fed = tuple[AudioInputStream, bytes | None]
_Outcome = tuple[AudioInputStream, VadFrame]


class AudioInput:
    """All streams of a process.

    Args:
        vad: The model; nobody else may use it.
        longest: Most packets that wait in all; further ones are dropped.
        longest_each: Most packets that wait of one stream.
        batch: Most packets in one batch.
    """

    def __init__(self, vad: SileroVad, longest: int = 4096, longest_each: int = 64, batch: int = 256) -> None:
        self._vad = vad
        self._longest = longest
        self._longest_each = longest_each
        self._batch = batch
        self.queue: deque[_Fed] = deque()
        """What the streams fed; a stream without a packet begins a new utterance."""
        self.fed = asyncio.Event()
        """Set while something is in the queue."""

    def open(self, uplink: AudioFormat, listener: FrameListener) -> AudioInputStream:
        """Return a new stream.

        Args:
            uplink: Of the stream; packets without audio count as silence of its frame's length.
            listener: Takes what is heard.
        """
        return AudioInputStream(self, uplink, listener)

    async def run(self) -> None:
        """Hear until cancelled; then the thread ends."""
        engine = Engine("ears", threads=1, queue=1)
        try:
            while True:
                await self.fed.wait()
                batch = self._take_batch()
                try:
                    heard: Sequence[_Outcome] = await engine.run(partial(self._process, batch), _BATCH_TIMEOUT)
                except ProviderError as error:
                    log.warning("batch of packets lost", extra={"packets": len(batch), "reason": str(error)})
                    heard = [(stream, stream.silence) for stream, packet in batch if packet is not None]
                asyncio.get_running_loop().call_soon(self._deliver, deque(heard))
        finally:
            engine.close()

    def is_full(self, waiting: int) -> bool:
        """Return whether a stream of which so many packets wait may feed none."""
        return waiting >= self._longest_each or len(self.queue) >= self._longest

    def _take_batch(self) -> list[_Fed]:
        batch = [self.queue.popleft() for _ in range(min(self._batch, len(self.queue)))]
        if not self.queue:
            self.fed.clear()
        return batch

    def _process(self, batch: list[_Fed]) -> Sequence[_Outcome]:
        heard = [found for stream, packet in batch if (found := stream.process(packet))]
        waiting = heard
        while waiting := [packet for packet in waiting if packet.windows]:
            # A stream's windows depend on one another: each round takes only its first one.
            first = {id(packet.state): packet for packet in reversed(waiting)}
            chosen = list(first.values())
            speech = self._vad.probabilities([(packet.state, packet.windows.popleft()) for packet in chosen])
            for packet, value in zip(chosen, speech, strict=True):
                packet.speech.append(value)
        return [packet.judge() for packet in heard]

    def _deliver(self, heard: deque[_Outcome]) -> None:
        try:
            while heard:
                stream, frame = heard.popleft()
                stream.waiting -= 1
                if not stream.closed:
                    stream.listener.on_frame(frame)
        finally:
            # One listener's failure must not cost the others their frames.
            if heard:
                asyncio.get_running_loop().call_soon(self._deliver, heard)

"""Opus decoding and voice activity detection for many streams, in batches in one thread beside the event loop.

Packets that arrive while a batch runs form the next batch. So batches grow with the load, and the event loop is woken
once for each batch. Counters are used on the event loop only, decoders and VAD states in the thread only.
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
"""Packets of at most this length hold no audio: the encoder leaves silence out (discontinuous transmission)."""
_BATCH_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class VadFrame:
    """One decoded packet with its probability of speech."""

    pcm: bytes
    """16 kHz mono s16le, as long as the packet; zeros if the packet holds no audio or is damaged."""
    speech: float
    """Highest probability of speech in the 32 ms windows that end in the packet; the last known one if none does."""


@dataclass(slots=True)
class _Stream:
    """The state of a stream in the thread."""

    silence: bytes
    decoder: Decoder = field(default_factory=lambda: Decoder(RATE))
    state: VadState = field(default_factory=VadState)
    rest: Samples = field(default_factory=lambda: np.zeros(0, np.float32))

    def reset_vad(self) -> None:
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
        """Return the windows that end in this audio; the rest begins the next window."""
        samples: Samples = np.concatenate((self.rest, np.frombuffer(pcm, "<i2").astype(np.float32) / 32768))
        whole = len(samples) // WINDOW * WINDOW
        self.rest = samples[whole:]
        return [samples[start : start + WINDOW] for start in range(0, whole, WINDOW)]


@dataclass(slots=True, eq=False)
class _DecodedPacket:
    """A packet in the thread: decoded, and waiting for the probabilities of its windows."""

    stream: "AudioInputStream"
    pcm: bytes
    state: VadState
    windows: deque[Samples]
    speech: list[float] = field(default_factory=list)

    def to_frame(self) -> tuple["AudioInputStream", VadFrame]:
        """Return the frame; call it in the order of the stream's packets, as it may repeat the last probability."""
        self.state.speech = max(self.speech, default=self.state.speech)
        return self.stream, VadFrame(self.pcm, self.state.speech)


class FrameListener(Protocol):
    """Receives the frames of a stream."""

    def on_frame(self, frame: VadFrame) -> None:
        """Take the frame of the next packet; called on the event loop, in the order of feeding."""


class AudioInputStream:
    """One stream; made by `AudioInput.open`, used on the event loop."""

    def __init__(self, audio_input: "AudioInput", uplink: AudioFormat, listener: FrameListener) -> None:
        self._input = audio_input
        self.listener = listener
        self._stream = _Stream(bytes(RATE * uplink.frame_ms // 1000 * 2))
        self.silence = VadFrame(self._stream.silence, 0.0)
        """The frame for a packet whose batch failed."""
        self.waiting = 0
        """Packets that were fed and whose frames are not delivered yet."""
        self.closed = False
        self.dropped = 0
        """Packets that were dropped because too many waited."""

    def feed(self, packet: bytes) -> bool:
        """Take the stream's next packet; never blocks. False: it was dropped and counted, because too many wait."""
        if self.closed or self._input.is_full(self.waiting):
            self.dropped += 1
            return False
        self._input.queue.append((self, packet))
        self._input.fed.set()
        self.waiting += 1
        return True

    def reset(self) -> None:
        """Begin a new utterance with the next packet: reset the voice activity detection, but not the decoder."""
        queue = self._input.queue
        # Two resets in a row are stored as one, so that resets cannot fill the queue.
        if not self.closed and not (queue and queue[-1] == (self, None)):
            queue.append((self, None))
            self._input.fed.set()

    def close(self) -> None:
        """End the stream; frames of packets that wait are not delivered."""
        self.closed = True

    def process(self, packet: bytes | None) -> _DecodedPacket | None:
        """Decode a packet; None resets the voice activity detection. Runs in the thread."""
        if packet is None:
            self._stream.reset_vad()
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
        vad: The model; only this object may use it.
        longest: Most waiting packets of all streams; further ones are dropped.
        longest_each: Most waiting packets of one stream.
        batch: Most packets in one batch.
    """

    def __init__(self, vad: SileroVad, longest: int = 4096, longest_each: int = 64, batch: int = 256) -> None:
        self._vad = vad
        self._longest = longest
        self._longest_each = longest_each
        self._batch = batch
        self.queue: deque[_Fed] = deque()
        """Streams with their packets; None instead of a packet begins a new utterance."""
        self.fed = asyncio.Event()
        """Set while the queue is not empty."""

    def open(self, uplink: AudioFormat, listener: FrameListener) -> AudioInputStream:
        """Return a new stream.

        Args:
            uplink: Format of the stream; a packet without audio counts as silence of one frame.
            listener: Receives the frames.
        """
        return AudioInputStream(self, uplink, listener)

    async def run(self) -> None:
        """Process packets until cancelled; then the thread ends."""
        engine = Engine("audio_input", threads=1, queue=1)
        try:
            while True:
                await self.fed.wait()
                batch = self._take_batch()
                try:
                    frames: Sequence[_Outcome] = await engine.run(partial(self._process, batch), _BATCH_TIMEOUT)
                except ProviderError as error:
                    log.warning("batch of packets lost", extra={"packets": len(batch), "reason": str(error)})
                    frames = [(stream, stream.silence) for stream, packet in batch if packet is not None]
                asyncio.get_running_loop().call_soon(self._deliver, deque(frames))
        finally:
            engine.close()

    def is_full(self, waiting: int) -> bool:
        """Return whether the next packet of a stream with `waiting` packets must be dropped."""
        return waiting >= self._longest_each or len(self.queue) >= self._longest

    def _take_batch(self) -> list[_Fed]:
        batch = [self.queue.popleft() for _ in range(min(self._batch, len(self.queue)))]
        if not self.queue:
            self.fed.clear()
        return batch

    def _process(self, batch: list[_Fed]) -> Sequence[_Outcome]:
        decoded = [found for stream, packet in batch if (found := stream.process(packet))]
        waiting = decoded
        while waiting := [packet for packet in waiting if packet.windows]:
            # The model's state after one window is the input of the next. So each round has one window of a stream.
            first = {id(packet.state): packet for packet in reversed(waiting)}
            chosen = list(first.values())
            speech = self._vad.probabilities([(packet.state, packet.windows.popleft()) for packet in chosen])
            for packet, value in zip(chosen, speech, strict=True):
                packet.speech.append(value)
        return [packet.to_frame() for packet in decoded]

    def _deliver(self, frames: deque[_Outcome]) -> None:
        try:
            while frames:
                stream, frame = frames.popleft()
                stream.waiting -= 1
                if not stream.closed:
                    stream.listener.on_frame(frame)
        finally:
            # If a listener raises, the other listeners still get their frames.
            if frames:
                asyncio.get_running_loop().call_soon(self._deliver, frames)

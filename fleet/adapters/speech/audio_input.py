"""Opus decoding and voice activity detection for many streams, in batches in one thread beside the event loop.

Packets that arrive while a batch runs form the next batch. So batches grow with the load, and the event loop is woken
once for each batch. Counters are used on the event loop only, decoders and VAD states in the thread only. The thread is
handed batches by a callback: `Engine.run`, with a task, futures and a timer, would cost five times as much for each.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fleet.adapters.speech.echo_stream import EchoPool, EchoStream
from fleet.adapters.speech.stream_state import StreamState
from fleet.adapters.speech.vad_silero import RATE, Samples, SileroVad, VadState
from fleet.core.reference import Played
from fleet.ground.metrics import providers
from fleet.wire.messages import AudioFormat

log = logging.getLogger(__name__)

QUIET = 0.05
"""Probability below which a window is certainly no speech. Outside of utterances, one window of the next packet is
enough then. Inside of them it is not: their ends would be found up to 0.3 s later (docs/performance-history.md)."""


class VadFrame(NamedTuple):
    """One decoded packet with its probability of speech."""

    pcm: bytes
    """16 kHz mono s16le, as long as the packet; zeros if the packet holds no audio, is damaged or was lost."""
    speech: float
    """Highest probability of speech in the 32 ms windows that end in the packet; the last known one if none does."""


MANY = 8
"""Packets of a batch from which on two ticks of the socket form one batch: a busy edge wakes half as often, and a
larger batch costs less for each packet. Half of the frames come one tick (10 ms) later."""
GATHER_SECONDS = 0.015
"""Longest wait for the next tick."""
_NEXT_TICK_SECONDS = 0.004
"""Less than the shortest time between two ticks."""


@dataclass(slots=True, eq=False)
class _DecodedPacket:
    """A packet in the thread."""

    stream: "AudioInputStream"
    pcm: bytes
    played: Played | None = None
    """What the device had just played; None if the packet was lost."""
    echoes: bool = False
    """Whether all that is heard is the rest of an echo."""
    windows: list[Samples] | None = None
    """Those that are not judged yet; None until the packets before it are."""
    speech: list[float] = field(default_factory=list)
    """The probabilities of those that are."""

    @property
    def waits(self) -> bool:
        return self.windows is None or bool(self.windows)

    def to_frame(self) -> tuple["AudioInputStream", VadFrame]:
        return self.stream, VadFrame(self.pcm, self.speech[-1])


class FrameListener(Protocol):
    """Receives the frames of a stream."""

    def on_frame(self, frame: VadFrame) -> None:
        """Take the frame of the next packet; called on the event loop, in the order of feeding."""


class AudioInputStream:
    """One stream; made by `AudioInput.open`, used on the event loop."""

    def __init__(
        self, audio_input: "AudioInput", uplink: AudioFormat, listener: FrameListener, *, echoes: bool
    ) -> None:
        self._input = audio_input
        self.listener: FrameListener | None = listener
        """None once the stream is closed: its listener has it, and a circle would wait for the garbage collector."""
        self._stream = StreamState(bytes(RATE * uplink.frame_ms // 1000 * 2))
        self._stream.echo = EchoStream(audio_input.echo) if echoes and audio_input.echo else None
        self.silence = VadFrame(self._stream.silence, 0.0)
        """The frame for a packet whose batch failed."""
        self.waiting = 0
        """Packets that were fed and whose frames are not delivered yet."""
        self.recording = False
        """Whether an utterance is under way; then all of its windows are judged."""
        self.closed = False
        self.dropped = 0
        """Packets that were dropped because too many waited."""

    def feed(self, packet: bytes, played: Played | None = None) -> bool:
        """Take the next packet, or `LOST`; never blocks. False: it was dropped and counted, because too many wait.

        Args:
            packet: Opus.
            played: What the device had just played, whose echo may be in the packet; None if that is not known.
        """
        source = self._input
        if self.closed or source.is_full(self.waiting):
            self.dropped += 1
            return False
        source.queue.append((self, packet, played))
        if not source.busy:
            source.wake()
        self.waiting += 1
        return True

    def close(self) -> None:
        """End the stream; frames of packets that wait are not delivered."""
        self.closed = True
        self.listener = None

    def decode(self, packet: bytes, played: Played | None) -> _DecodedPacket:
        """Decode a packet. Runs in the thread."""
        if self.closed:
            return _DecodedPacket(self, b"", windows=[])
        return _DecodedPacket(self, self._stream.decode(packet), played)

    def cancel_echo(self, packet: _DecodedPacket) -> None:
        """Remove the echo from a packet; packets come in their order. Runs in the thread."""
        if self._stream.echo and not self.closed:
            packet.pcm, speakable = self._stream.echo.process(packet.pcm, packet.played)
            packet.echoes = not speakable

    def next_window(self, packet: _DecodedPacket) -> tuple[VadState, Samples] | None:
        """Return the next window of a packet, if it has one; packets come in their order. Runs in the thread."""
        if packet.windows is None:
            sparse = not self.recording and self._stream.state.speech < QUIET
            packet.windows = self._stream.cut(packet.pcm, sparse=sparse)
        return (self._stream.state, packet.windows.pop(0)) if packet.windows else None

    def judge(self, packet: _DecodedPacket) -> None:
        """Note the probability of a packet whose windows are judged. Runs in the thread."""
        self._stream.state.speech = max(packet.speech, default=self._stream.state.speech)
        packet.speech.append(0.0 if packet.echoes else self._stream.state.speech)


_Fed = tuple[AudioInputStream, bytes, Played | None]
_Outcome = tuple[AudioInputStream, VadFrame]


class AudioInput:
    """All streams of a process.

    Args:
        vad: The model; only this object may use it.
        longest: Most waiting packets of all streams; further ones are dropped.
        longest_each: Most waiting packets of one stream.
        batch: Most packets in one batch.
        echo: Has echo cancellers for devices whose echo the server cancels; None if it cancels none.
    """

    def __init__(
        self,
        vad: SileroVad,
        longest: int = 4096,
        longest_each: int = 64,
        batch: int = 256,
        echo: EchoPool | None = None,
    ) -> None:
        self.echo = echo
        self._vad = vad
        self._longest = longest
        self._longest_each = longest_each
        self._batch = batch
        self.queue: deque[_Fed] = deque()
        """Streams with their packets, and what the device played before them."""
        self._pool: ThreadPoolExecutor | None = None
        self.busy = True
        """Whether a batch is being processed or about to be, or no thread runs."""
        self._largest_lately = 0
        """Packets of the largest batch, halved for each batch since then."""
        self._latest: asyncio.TimerHandle | None = None
        """Ends the wait for the next tick."""
        self._next_tick_at = 0.0

    def open(self, uplink: AudioFormat, listener: FrameListener, *, echoes: bool = False) -> AudioInputStream:
        """Return a new stream.

        Args:
            uplink: Format of the stream; a packet without audio counts as silence of one frame.
            listener: Receives the frames.
            echoes: Whether to remove the echo of what the device plays.
        """
        return AudioInputStream(self, uplink, listener, echoes=echoes)

    async def run(self) -> None:
        """Process packets until cancelled; then the thread ends."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="audio_input")
        self._hand_over()
        try:
            await asyncio.Event().wait()
        finally:
            self.busy = True
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def wake(self) -> None:
        """Give the thread what is in the queue, soon; for one that is not busy."""
        loop = asyncio.get_running_loop()
        if self._largest_lately >= MANY:
            now = loop.time()
            if self._latest is None:
                self._next_tick_at = now + _NEXT_TICK_SECONDS
                self._latest = loop.call_later(GATHER_SECONDS, self._hand_over)
            if now < self._next_tick_at:
                return
        # Not at once: the packets of one tick form one batch.
        self.busy = True
        loop.call_soon(self._hand_over)

    def is_full(self, waiting: int) -> bool:
        """Return whether the next packet of a stream with `waiting` packets must be dropped."""
        return waiting >= self._longest_each or len(self.queue) >= self._longest

    def _hand_over(self) -> None:
        """Give the thread what waits."""
        if self._latest:
            self._latest.cancel()
            self._latest = None
        self.busy = bool(self.queue) or self._pool is None
        if not self.queue or self._pool is None:
            return
        batch = [self.queue.popleft() for _ in range(min(self._batch, len(self.queue)))]
        self._largest_lately = max(len(batch), self._largest_lately // 2)
        loop = asyncio.get_running_loop()

        def note(done: Future[Sequence[_Outcome]]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._take, batch, done)

        self._pool.submit(self._process, batch).add_done_callback(note)

    def _take(self, batch: list[_Fed], done: Future[Sequence[_Outcome]]) -> None:
        """Take the frames of a batch from the thread."""
        if done.cancelled():
            return
        self._hand_over()
        error = done.exception()
        if error:
            providers.errors.add("audio_input", "engine")
            log.warning("batch of packets lost", extra={"packets": len(batch), "reason": type(error).__name__})
        frames = [(stream, stream.silence) for stream, *_ in batch] if error else done.result()
        asyncio.get_running_loop().call_soon(self._deliver, deque(frames))

    def _process(self, batch: list[_Fed]) -> Sequence[_Outcome]:
        decoded = waiting = [stream.decode(packet, played) for stream, packet, played in batch]
        for packet in decoded:
            packet.stream.cancel_echo(packet)
        while waiting := [packet for packet in waiting if packet.waits]:
            # The model's state after one window is the input of the next. So each round has one window of a stream.
            first = {packet.stream: packet for packet in reversed(waiting)}.values()
            chosen = [(packet, window) for packet in first if (window := packet.stream.next_window(packet))]
            speech = self._vad.probabilities([window for _, window in chosen])
            for (packet, _), value in zip(chosen, speech, strict=True):
                packet.speech.append(value)
            for packet in first:
                if not packet.waits:
                    packet.stream.judge(packet)
        return [packet.to_frame() for packet in decoded if not packet.stream.closed]

    def _deliver(self, frames: deque[_Outcome]) -> None:
        try:
            while frames:
                stream, frame = frames.popleft()
                stream.waiting -= 1
                if stream.listener:
                    stream.listener.on_frame(frame)
        finally:
            # If a listener raises, the other listeners still get their frames.
            if frames:
                asyncio.get_running_loop().call_soon(self._deliver, frames)

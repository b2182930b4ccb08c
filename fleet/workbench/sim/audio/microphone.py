"""The microphone: a packet every frame time while it is on, of what the user says or of silence."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fleet.workbench.sim.audio.echo_path import Room
from fleet.workbench.sim.audio.echo_references import EchoReferences
from fleet.workbench.sim.audio.encoder import SAMPLE_RATE, UplinkEncoder
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.records.loudness import SAMPLE_BYTES, speech_bounds

SEND_QUEUE = 40
"""Packets that wait for the main loop; the oldest goes when a further one comes (contract 4.3)."""


class UserVoice(Protocol):
    """Something the user says; `began` and `ended` are when its speech, without the silence around it, was captured.

    `over` says that nothing more of it will be captured: it was said, or the microphone was switched off.
    """

    began: float | None
    ended: float | None
    over: bool

    def take(self, size: int, captured: float) -> bytes:
        """Return the next `size` bytes, a frame whose capture ends at `captured`."""


class Utterance:
    """A recording that is said.

    Args:
        pcm: At 16 kHz.
    """

    def __init__(self, pcm: bytes) -> None:
        self.pcm = pcm
        self.began: float | None = None
        self.ended: float | None = None
        self.over = False
        self._first, self._last = (at * SAMPLE_BYTES for at in speech_bounds(pcm, SAMPLE_RATE))
        self._at = 0

    def take(self, size: int, captured: float) -> bytes:
        piece = self.pcm[self._at : self._at + size]
        began_at = captured - size / SAMPLE_BYTES / SAMPLE_RATE
        if self.began is None and self._at + size > self._first:
            self.began = began_at + max(0, self._first - self._at) / SAMPLE_BYTES / SAMPLE_RATE
        if self.ended is None and self._at + size >= self._last:
            self.ended = began_at + (self._last - self._at) / SAMPLE_BYTES / SAMPLE_RATE
        self._at += size
        self.over = self._at >= len(self.pcm)
        return piece.ljust(size, b"\0")


@dataclass(frozen=True, slots=True)
class Captured:
    """A packet, and the timestamp of what sounded when it was captured, or 0."""

    payload: bytes
    timestamp: int = 0


class Microphone:
    """Captures in real time once started; what it captured waits in a short queue for the main loop.

    Args:
        encoder: Makes the packets.
        references: What each captured frame carries.
        clock: Monotonic seconds.
        signal: Notified when the microphone starts or stops, and when speech has ended.
        ready: Called when a packet waits.
        room: Adds the echo of the loudspeaker.
    """

    def __init__(
        self,
        encoder: UplinkEncoder,
        references: EchoReferences,
        clock: Callable[[], float],
        signal: ChangeSignal,
        ready: Callable[[], None],
        room: Room | None = None,
    ) -> None:
        self._encoder = encoder
        self._references = references
        self._clock = clock
        self._signal = signal
        self._ready = ready
        self._room = room or Room(None)
        self._queue: deque[Captured] = deque()
        self._next: float | None = None
        self._changed = asyncio.Event()
        self._voice: UserVoice | None = None
        self.lost = 0

    @property
    def running(self) -> bool:
        return self._next is not None

    def start(self, warm_up: float) -> None:
        """Switch on: capture begins after `warm_up` seconds, and what is said before them is lost.

        Firmware waits once, before its first read (`audio_input_need_warmup_`, audio_service.cc); a frame's packet then
        leaves as soon as the frame is complete.
        """
        self._references.clear()
        self._next = self._clock() + warm_up + self._encoder.frame_ms / 1000
        self._note_change()

    def stop(self) -> None:
        """Switch off; packets that wait are still sent, what the user says from now on goes unheard."""
        self._next = None
        if self._voice:
            self._voice.over = True
            self._voice = None
        self._note_change()

    def hear(self, voice: UserVoice) -> None:
        """Let the user speak from the next frame on."""
        self._voice = voice

    def pop(self) -> Captured | None:
        """Return the oldest packet that waits."""
        return self._queue.popleft() if self._queue else None

    def drop_waiting(self) -> None:
        self._queue.clear()

    async def run(self) -> None:
        """Capture until cancelled."""
        while True:
            try:
                async with asyncio.timeout_at(self._next):
                    await self._changed.wait()
                self._changed.clear()
            except TimeoutError:
                self.advance(self._clock())

    def advance(self, now: float) -> None:
        """Do what is due by now."""
        while self._next is not None and self._next <= now:
            self._queue.append(
                Captured(
                    self._encoder.encode(self._room.mix(self._frame(self._next), self._next)), self._references.pop()
                )
            )
            self._next += self._encoder.frame_ms / 1000
            if len(self._queue) > SEND_QUEUE:
                self._queue.popleft()
                self.lost += 1
            self._ready()

    def _frame(self, captured: float) -> bytes:
        size = self._encoder.frame_bytes
        if self._voice is None:
            return bytes(size)
        piece = self._voice.take(size, captured)
        if self._voice.ended is not None:
            self._signal.notify()
        if self._voice.over:
            self._voice = None
        return piece

    def _note_change(self) -> None:
        self._changed.set()
        self._signal.notify()

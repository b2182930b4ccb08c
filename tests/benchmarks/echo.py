"""How well the edge hears a user over the echo of its own answer: a loudspeaker in a small room, without a network.

The loudspeaker's path, the losses and the timestamps are simulated. Codecs, jitter buffer, cancellers, voice detection,
utterances and recognition are those of the edge. No real room was measured.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from rich.console import Console
from rich.table import Table

from fleet.adapters.speech.audio_input import AudioInput, VadFrame
from fleet.adapters.speech.echo_canceller import EchoCanceller
from fleet.adapters.speech.echo_stream import EchoPool
from fleet.adapters.speech.opus import Decoder, Encoder
from fleet.adapters.speech.stream_state import LOST
from fleet.adapters.speech.voice import Voice
from fleet.core.own_words import is_own
from fleet.core.playout_device import LEAD_OF_INTERRUPTIBLE
from fleet.core.reference import EchoReference
from fleet.roles.edge.interruption import BARGE_IN_MS
from fleet.roles.edge.listening.jitter_buffer import JitterBuffer, StampedPacket
from fleet.roles.edge.listening.utterance_collector import OVER_ECHO_MS, Utterance, UtteranceCollector
from fleet.wire.messages import AudioFormat
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.sim.audio.echo_path import RATE, EchoPath
from fleet.workbench.sim.profiles.echo_setting import EchoSetting
from tests.support.offline_speech import silero, voices, whisper
from tests.support.recordings import Recording, recordings
from tests.support.word_errors import error_rate

FRAME_MS = 60
FRAME = RATE * FRAME_MS // 1000
USER = 0.05
"""RMS of the user's speech at the microphone."""
HISS = 0.0008
UNDERSTOOD = 0.25
"""Largest share of wrong words or characters with which a command is understood."""
ANSWER = (
    "The weather tomorrow will be mostly sunny with a light wind from the west. In the afternoon a few clouds may come "
    "up. If you plan to go outside, take a thin jacket with you, because the evening will be cool. By the way, your "
    "calendar has two meetings in the morning, and the second one begins at eleven. Shall I remind you before it?"
)


@dataclass(frozen=True, slots=True)
class EchoFigures:
    """What was found at one level of the echo."""

    level_db: float
    minutes: float
    self_interruptions: int
    commands: int
    understood: int
    noticed_seconds: float
    """Median time from the user's first sound to the interruption."""
    cpu_ms: float
    """CPU time of the cancellers for a second of audio."""
    missed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoExperiment(Experiment[list[EchoFigures]]):
    """What is measured: each of the 20 commands `repeats` times at each level, and as many seconds without a user."""

    name: ClassVar[str] = "echo"
    levels: Sequence[float] = (0.0, 7.0, 13.0)
    loss: float = 0.02
    commands: int = 20

    async def measure(self, progress: Progress) -> list[EchoFigures]:
        """Measure each level."""
        packets = await answer_packets()
        said = [one for pair in zip(recordings("en"), recordings("zh"), strict=True) for one in pair]
        said = said[: self.commands] * self.repeats
        figures = []
        for level in self.levels:
            progress(f"echo of {level:+.0f} dB")
            figures.append(await self._measure(level, packets, said))
        return figures

    async def _measure(self, level: float, packets: list[bytes], said: list[Recording]) -> EchoFigures:
        timed = TimedCancellers()
        audio_input = AudioInput(silero(), echo=EchoPool(timed.make))
        task = asyncio.create_task(audio_input.run())
        try:
            alone = 0
            for delay in (50.0, 90.0, 150.0):
                scene = EchoScene(audio_input, EchoSetting(level, delay, int(delay)), packets, self.loss)
                alone += await scene.listen_alone(int(self.seconds * 1000 / FRAME_MS / 3))
            heard: list[tuple[Recording, Heard]] = []
            for number, recording in enumerate(said):
                delay = (50.0, 70.0, 90.0, 120.0, 150.0)[number % 5]
                scene = EchoScene(audio_input, EchoSetting(level, delay, number), packets, self.loss)
                heard.append((recording, await scene.hear(recording)))
        finally:
            task.cancel()
        good = [is_understood(recording, one.text) for recording, one in heard]
        return EchoFigures(
            level,
            self.seconds / 60,
            alone,
            len(heard),
            sum(good),
            float(np.median([one.noticed for _, one in heard])),
            timed.milliseconds,
            [f"{recording.text}: {one.text}" for (recording, one), ok in zip(heard, good, strict=True) if not ok],
        )


@dataclass(slots=True)
class Heard:
    """What the edge made of one command."""

    noticed: float = float("inf")
    text: str = ""


class TimedCancellers:
    """Makes cancellers, and notes the CPU time that they take."""

    def __init__(self) -> None:
        self._cpu = self._audio = 0.0

    def make(self) -> EchoCanceller:
        return _Timed(self)

    def note(self, cpu: float, audio: float) -> None:
        self._cpu += cpu
        self._audio += audio

    @property
    def milliseconds(self) -> float:
        return 1000 * self._cpu / self._audio if self._audio else 0.0


class _Timed(EchoCanceller):
    def __init__(self, notes: TimedCancellers) -> None:
        super().__init__()
        self._notes = notes

    def process(self, near: bytes, number: int | None) -> tuple[bytes, bool]:
        begun = time.thread_time()
        out = super().process(near, number)
        self._notes.note(time.thread_time() - begun, len(near) / 2 / RATE)
        return out


class EchoScene:
    """A device that speaks in a room, and the edge's ears.

    Args:
        audio_input: Of the edge.
        setting: Of the loudspeaker and the room.
        packets: The answer, again and again.
        loss: Share of packets that are lost on either way.
    """

    def __init__(self, audio_input: AudioInput, setting: EchoSetting, packets: list[bytes], loss: float) -> None:
        self._random = random.Random(setting.seed)
        self._noise = np.random.default_rng(setting.seed)
        self._packets, self._loss = packets, loss
        self._path = EchoPath(setting)
        self._loudspeaker = Decoder(RATE)
        self._encoder = Encoder(RATE, FRAME_MS, 16_000, 0, dtx=True, application="voip")
        self._reference = EchoReference(FRAME_MS)
        self._jitter = JitterBuffer()
        self._collector = _collector()
        self._stream = audio_input.open(AudioFormat(RATE, FRAME_MS), self, echoes=True)
        self._frames: asyncio.Queue[VadFrame] = asyncio.Queue()
        self._number = self._sent = self._slip = 0
        self._stops_at: int | None = None

    def on_frame(self, frame: VadFrame) -> None:
        """Take a frame of the microphone without echo."""
        self._frames.put_nowait(frame)

    async def listen_alone(self, frames: int) -> int:
        """Play for so long while nobody speaks; return how often the answer interrupted itself."""
        interruptions = 0
        self._collector.mark_overlap()
        for _ in range(frames):
            ended = await self._step(np.zeros(FRAME))
            if self._collector.overlap_ms >= BARGE_IN_MS or (ended and ended.voiced_ms >= BARGE_IN_MS):
                interruptions += 1
                self._collector = _collector()
        self._stream.close()
        return interruptions

    async def hear(self, recording: Recording) -> Heard:
        """Let the user speak over the answer after 3 to 6 s, and recognise it."""
        for _ in range(self._random.randint(50, 100)):
            await self._step(np.zeros(FRAME))
        speech = np.frombuffer(recording.pcm(), "<i2") / 32768
        loud = np.abs(speech) > 0.01
        speech = speech[np.argmax(loud) :] * USER / np.sqrt(np.mean(speech[loud] ** 2))
        heard, utterance = Heard(), None
        for at in range(0, len(speech) + 3 * RATE, FRAME):
            piece = speech[at : at + FRAME]
            utterance = utterance or await self._step(np.pad(piece, (0, FRAME - len(piece))))
            if self._stops_at is None and self._collector.overlap_ms >= BARGE_IN_MS:
                heard.noticed = (at + FRAME) / RATE
                # The device plays what it has queued.
                self._stops_at = self._number + LEAD_OF_INTERRUPTIBLE
            if utterance:
                break
        self._stream.close()
        if utterance and utterance.voiced_ms >= BARGE_IN_MS:
            text = (await whisper().transcribe(utterance.pcm)).text
            heard.text = "" if is_own(text, [ANSWER]) else text
        return heard

    async def _step(self, user: np.ndarray) -> Utterance | None:
        """Let a frame of time pass; return the utterance that ends in it."""
        self._number += 1
        timestamp, played = self._play()
        captured = self._path.hear(played) + user + HISS * self._noise.standard_normal(FRAME)
        packet = self._encoder.encode((np.clip(captured, -1, 1) * 32767).astype("<i2").tobytes())
        if self._random.random() < self._loss:
            return None
        ended = None
        for released in self._jitter.push(self._number, StampedPacket(packet, timestamp), self._number * 0.06):
            if isinstance(released, StampedPacket):
                self._stream.feed(released.packet, self._reference.find(released.timestamp, 0.0))
            else:
                self._stream.feed(LOST)
            frame = await self._frames.get()
            collected = self._collector.add(frame.pcm, frame.speech, self._number * 0.06)
            self._stream.recording = self._collector.recording
            ended = collected if isinstance(collected, Utterance) else ended
        return ended

    def _play(self) -> tuple[int, np.ndarray]:
        """Return what the microphone's frame carries, and what the loudspeaker plays."""
        if self._stops_at is not None and self._number > self._stops_at:
            return 0, np.zeros(FRAME)
        while self._sent < self._number + LEAD_OF_INTERRUPTIBLE:
            self._sent += 1
            self._reference.note_sent(self._sent * FRAME_MS, self._packets[self._sent % len(self._packets)])
        if self._number % 333 == 0:
            self._slip = self._random.choice((-1, 0, 1))
        pcm = self._loudspeaker.decode(self._packets[self._number % len(self._packets)])
        if self._random.random() < self._loss:
            return 0, np.zeros(FRAME)
        return (self._number + self._slip) * FRAME_MS, np.frombuffer(pcm, "<i2") / 32768


def _collector() -> UtteranceCollector:
    return UtteranceCollector(600.0, further_ms=OVER_ECHO_MS)


async def answer_packets() -> list[bytes]:
    """Return the packets of the answer, as the edge sends them."""
    voice = Voice(voices())
    sentences = [sentence + "." for sentence in ANSWER.split(". ")]
    packets = [
        packet
        for sentence in sentences
        async for batch in voice.packets(sentence, "en", AudioFormat(24_000, FRAME_MS))
        for packet in batch
    ]
    voice.close()
    return packets


def is_understood(recording: Recording, text: str) -> bool:
    """Return whether a transcript has at most a quarter of its words or characters wrong."""
    return bool(text) and error_rate([(recording.text, text)], recording.language) <= UNDERSTOOD


def show_echo(console: Console, figures: list[EchoFigures]) -> None:
    """Print the table."""
    table = Table("echo", "self-interruptions", "commands understood", "noticed after", "CPU a second", box=None)
    for found in figures:
        table.add_row(
            f"{found.level_db:+.0f} dB",
            f"{found.self_interruptions} in {found.minutes:g} min",
            f"{found.understood} of {found.commands}",
            f"{found.noticed_seconds:.2f} s",
            f"{found.cpu_ms:.1f} ms",
        )
    console.print(table)
    for found in figures:
        for missed in found.missed:
            console.print(f"{found.level_db:+.0f} dB: {missed}", style="dim")

"""Audio input and voice of an edge under test: real codecs without models, or packets that were made before."""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from typing import cast

from fleet.adapters.speech.audio_input import AudioInput, FrameListener, VadFrame
from fleet.adapters.speech.vad_silero import SileroVad
from fleet.adapters.speech.voice import Voice
from fleet.core.ports import USUAL_VOICE, Transcript, VoiceOptions
from fleet.wire.messages import AudioFormat
from fleet.workbench.bench import sounds, streams

SENTENCE_PACKETS = (25, 45)
"""Shortest and longest sentence: 1.5 to 2.7 seconds."""
_PIECE_MS = 600
"""Audio that a voice's engine hands over at once."""


class NoAsr:
    """Understands nothing; the uplink holds no speech."""

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        return Transcript("")

    async def aclose(self) -> None:
        """Nothing was opened."""


class _PreparedDecoder:
    """Decodes every packet to the same silent frame, once for all packets of one turn of the loop, as the real one."""

    waiting = 0
    """Packets wait for one turn of the loop only."""

    def __init__(self, source: "_PreparedAudioInput", uplink: AudioFormat, listener: FrameListener) -> None:
        self._source = source
        self._listener = listener
        self._frame = VadFrame(bytes(sounds.UPLINK_RATE * uplink.frame_ms // 1000 * 2), 0.0)

    def feed(self, packet: bytes, played: bytes = b"") -> bool:
        self._source.accept(self)
        return True

    def deliver(self) -> None:
        self._listener.on_frame(self._frame)

    def close(self) -> None:
        """Nothing waits for longer than a turn of the loop."""


class _PreparedAudioInput:
    def __init__(self) -> None:
        self._fed: list[_PreparedDecoder] = []
        self._loop = asyncio.get_running_loop()

    echo = None

    def open(self, uplink: AudioFormat, listener: FrameListener, *, echoes: bool = False) -> _PreparedDecoder:
        return _PreparedDecoder(self, uplink, listener)

    def accept(self, decoder: _PreparedDecoder) -> None:
        if not self._fed:
            self._loop.call_soon(self._deliver)
        self._fed.append(decoder)

    async def run(self) -> None:
        await asyncio.Event().wait()

    def _deliver(self) -> None:
        fed, self._fed = self._fed, []
        for decoder in fed:
            decoder.deliver()


class _PreparedVoice:
    """Speaks sentences of random length in packets that were encoded before."""

    def __init__(self) -> None:
        self._packets = sounds.packets(sounds.voice(sounds.DOWNLINK_RATE), sounds.DOWNLINK_RATE)
        self._random = random.Random(0)

    async def packets(self, text: str, language: str, downlink: AudioFormat) -> AsyncGenerator[Sequence[bytes], None]:
        first = self._random.randrange(len(self._packets))
        end = first + self._random.randint(*SENTENCE_PACKETS)
        # In pieces of the length in which the real one encodes.
        piece = _PIECE_MS // streams.FRAME_MS
        for at in range(first, end, piece):
            yield [self._packets[one % len(self._packets)] for one in range(at, min(at + piece, end))]


class _PremadeTts:
    """Speaks sentences of random length in PCM that was made before."""

    sample_rate = sounds.DOWNLINK_RATE

    def __init__(self) -> None:
        self._pcm = sounds.voice(self.sample_rate)
        self._random = random.Random(0)

    async def speak(self, text: str, language: str, voice: VoiceOptions = USUAL_VOICE) -> AsyncGenerator[bytes, None]:
        frame = self.sample_rate * 60 // 1000 * 2
        left = frame * self._random.randint(*SENTENCE_PACKETS)
        piece = self.sample_rate * _PIECE_MS // 1000 * 2
        for at in range(0, left, piece):
            yield self._pcm[at % len(self._pcm) :][: min(piece, left - at)]

    async def aclose(self) -> None:
        """Nothing was opened."""


def prepared() -> tuple[AudioInput, Voice]:
    """Return an audio input and a voice that decode and encode nothing; call it on the event loop.

    The rest of the edge's work on every frame (endpoint, recorder, synthesis task) is done.
    """
    return cast(AudioInput, _PreparedAudioInput()), cast(Voice, _PreparedVoice())


def real() -> tuple[AudioInput, Voice]:
    """Return real Opus decoding with voice detection, and real Opus encoding; call it on the event loop.

    Raises:
        ConfigError: The model or onnxruntime is missing.
    """
    return AudioInput(SileroVad.load(None)), Voice(_PremadeTts())

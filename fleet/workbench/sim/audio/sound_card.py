"""A person's own microphone and loudspeaker in place of recordings, through the optional package sounddevice."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from fleet import DISTRIBUTION
from fleet.ground.errors import Unavailable
from fleet.workbench.sim.audio.encoder import SAMPLE_RATE
from fleet.workbench.sim.records.loudness import SAMPLE_BYTES, first_audible

_MOST_SECONDS = 2
_LEAST_LOUD_FRAMES = 2
_PLAYED_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)

Play = Callable[[bytes, int], None]


class LiveVoice:
    """What a real microphone captures until the device stops listening; at most the last 2 s are kept."""

    def __init__(self) -> None:
        self._heard = bytearray()
        self._loud_frames = 0
        self.began: float | None = None
        self.ended: float | None = None
        self.over = False

    def feed(self, pcm: bytes) -> None:
        """Take what was captured, at 16 kHz."""
        self._heard.extend(pcm)
        surplus = len(self._heard) - _MOST_SECONDS * SAMPLE_RATE * SAMPLE_BYTES
        if surplus > 0:
            del self._heard[:surplus]

    def take(self, size: int, captured: float) -> bytes:
        frame = bytes(self._heard[:size]).ljust(size, b"\0")
        del self._heard[:size]
        if first_audible(frame) is not None:
            self._loud_frames += 1
            if self._loud_frames >= _LEAST_LOUD_FRAMES:
                self.began = self.began or captured - size / SAMPLE_BYTES / SAMPLE_RATE
                self.ended = captured
        return frame


def sound_system() -> ModuleType:
    """Return the package sounddevice.

    Raises:
        Unavailable: It, the PortAudio library below it, a microphone or a loudspeaker is missing; says what to install.
    """
    try:
        sounds = importlib.import_module("sounddevice")
    except ImportError as error:
        raise Unavailable(f"--mic needs the package sounddevice: pip install '{DISTRIBUTION}[mic]'") from error
    except OSError as error:
        raise Unavailable("--mic needs the library PortAudio: apt install libportaudio2, or your system's") from error
    try:
        for kind in ("input", "output"):
            sounds.query_devices(kind=kind)
    except (sounds.PortAudioError, ValueError) as error:
        why = " ".join(str(error).split())
        raise Unavailable(f"--mic needs a microphone and a loudspeaker: {why}. Use --text or --wav instead") from error
    return sounds


@contextmanager
def microphone(sounds: ModuleType, voices: list[LiveVoice]) -> Iterator[None]:
    """Feed the first voice that is not over from the default microphone."""

    def capture(data: memoryview, *_: object) -> None:
        voice = next((one for one in voices if not one.over), None)
        if voice:
            voice.feed(bytes(data))

    with sounds.RawInputStream(samplerate=SAMPLE_RATE, channels=1, dtype="int16", callback=capture):
        yield


@contextmanager
def loudspeaker(sounds: ModuleType) -> Iterator[Play]:
    """Play on the default loudspeaker whatever the returned function is given, at one rate at a time."""
    waiting = bytearray()

    def fill(out: memoryview, *_: object) -> None:
        size = len(out)
        out[:] = bytes(waiting[:size]).ljust(size, b"\0")
        del waiting[:size]

    streams: dict[int, object] = {}

    def play(pcm: bytes, sample_rate: int) -> None:
        if sample_rate not in streams and sample_rate in _PLAYED_RATES:
            stream = sounds.RawOutputStream(samplerate=sample_rate, channels=1, dtype="int16", callback=fill)
            stream.start()
            streams[sample_rate] = stream
        waiting.extend(pcm)

    try:
        yield play
    finally:
        for stream in streams.values():
            stream.close()  # type: ignore[attr-defined] # the package has no types

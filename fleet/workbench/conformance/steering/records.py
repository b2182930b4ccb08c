"""What the scripted models were asked, by mark; all of it bounded, the oldest goes first."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from fleet.workbench.conformance.steering.voice import MARKS, Marked
from fleet.workbench.sim.records.change_signal import ChangeSignal

Body = Mapping[str, JsonValue]

_MOST_HEARD, _MOST_ASKED, _MOST_SPOKEN, _MOST_STRAYS = 32, 64, 256, 100
_MOST_PCM = 64 * 1024 * 1024


@dataclass(slots=True, eq=False)
class HeardAudio:
    """Audio that recognition was given: when on the clock, how long, and what it says when."""

    at: float
    seconds: float
    marks: list[Marked]
    pcm: bytes
    """At 16 kHz; b"" once newer audio of other marks needed the room."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A request to the chat model, with its messages and its offers as they were sent."""

    at: float
    messages: tuple[Body, ...]
    tools: tuple[Body, ...]


@dataclass(slots=True, eq=False)
class Spoken:
    """A request to the voice; `seconds` of audio were sent until now, `aborted`: the server did not want the rest."""

    at: float
    text: str
    seconds: float = 0.0
    aborted: bool = False
    done: bool = False
    """Whether nothing more will be sent."""


@dataclass(frozen=True, slots=True)
class Stray:
    """A request that no scene matched: `asr`, `chat` or `voice`, and what it said."""

    kind: str
    detail: str


class Records:
    """The records of all marks."""

    def __init__(self) -> None:
        self.heard: dict[int, deque[HeardAudio]] = {mark: deque(maxlen=_MOST_HEARD) for mark in MARKS}
        self.asked: dict[int, deque[Asked]] = {mark: deque(maxlen=_MOST_ASKED) for mark in MARKS}
        self.spoken: dict[int, deque[Spoken]] = {mark: deque(maxlen=_MOST_SPOKEN) for mark in MARKS}
        self.strays: deque[Stray] = deque(maxlen=_MOST_STRAYS)
        self.counts: Counter[str] = Counter()
        """Requests of each kind, and the strays among them under `stray asr` and so on."""
        self.changed = ChangeSignal()
        self._audio: deque[HeardAudio] = deque()
        self._held = 0

    def clear(self, mark: int) -> None:
        """Forget what concerns a mark."""
        for records in (self.heard, self.asked, self.spoken):
            records[mark].clear()

    def note_heard(self, audio: HeardAudio) -> None:
        self.counts["asr"] += 1
        for mark in dict.fromkeys(marked.mark for marked in audio.marks):
            self.heard[mark].append(audio)
        self._audio.append(audio)
        self._held += len(audio.pcm)
        while self._held > _MOST_PCM:
            oldest = self._audio.popleft()
            self._held -= len(oldest.pcm)
            oldest.pcm = b""
        self.changed.notify()

    def note_asked(self, mark: int | None, asked: Asked) -> None:
        self.counts["chat"] += 1
        if mark in self.asked:
            self.asked[mark].append(asked)
        self.changed.notify()

    def note_spoken(self, mark: int | None, spoken: Spoken) -> None:
        self.counts["voice"] += 1
        if mark in self.spoken:
            self.spoken[mark].append(spoken)
        self.changed.notify()

    def note_stray(self, kind: str, detail: str) -> None:
        self.counts[f"stray {kind}"] += 1
        self.strays.append(Stray(kind, detail[:200]))
        self.changed.notify()

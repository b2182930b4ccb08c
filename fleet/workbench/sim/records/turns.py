"""Turns as the user perceives them: from the end of the question to the end of the answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from fleet.workbench.sim.records.loudness import SAMPLE_BYTES, first_audible

Outcome = Literal["open", "answered", "silent", "aborted", "closed", "not listening", "timeout"]

_LATENCIES = {
    "stt": "stt",
    "tts_start": "tts start",
    "first_packet": "first packet",
    "first_audible": "first audible",
}


@dataclass(slots=True)
class Turn:
    """One utterance and its answer; `times` are on the device's clock, by the names of the steps.

    `spoken` is False for an answer without a question, such as a greeting. `cut_off`: the device stopped
    listening before the user had finished.
    """

    index: int
    spoken: bool
    times: dict[str, float] = field(default_factory=dict)
    transcript: str = ""
    emotions: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    outcome: Outcome = "open"
    cut_off: bool = False
    sample_rate: int = 24_000
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    """Seconds of each silence inside a sentence: no packet was there when one was due."""

    def mark(self, name: str, at: float) -> None:
        """Keep the first time that something of this name happened."""
        self.times.setdefault(name, at)

    @property
    def latencies(self) -> dict[str, float]:
        """Milliseconds from the end of the speech to what came of it, as far as it came."""
        end = self.times.get("end of speech")
        if end is None:
            return {}
        return {
            name: round((self.times[step] - end) * 1000, 1) for name, step in _LATENCIES.items() if step in self.times
        }

    @property
    def reply(self) -> str:
        return " ".join(self.sentences)

    def heard(self) -> bytes:
        """Return what was played as one piece of PCM at `sample_rate`, gaps as silence."""
        if not self.pieces:
            return b""
        start = self.pieces[0][0]
        out = bytearray()
        for at, pcm in self.pieces:
            offset = round((at - start) * self.sample_rate) * SAMPLE_BYTES
            if offset > len(out):
                out.extend(bytes(offset - len(out)))
            out.extend(pcm)
        return bytes(out)


class TurnLog:
    """Keeps the turns of a device, at most one of them open.

    Args:
        ended: Called when the open turn ended.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self.turns: list[Turn] = []
        self.open: Turn | None = None
        self.on_sound: Callable[[bytes, int], None] | None = None
        """Called with every piece of PCM and its rate in Hz when it begins to sound."""
        self._over: Outcome | None = None

    @property
    def interrupted(self) -> bool:
        return self.open is not None and self._over == "aborted"

    def begin(self, *, spoken: bool) -> Turn:
        """Open a turn; one that is still open ends as it is."""
        self.end(self._over or "silent")
        self.open = Turn(len(self.turns), spoken)
        self.turns.append(self.open)
        return self.open

    def miss(self) -> Turn:
        """The user spoke to a device that did not listen."""
        turn = self.begin(spoken=True)
        self.end("not listening")
        return turn

    def mark(self, name: str, at: float) -> None:
        if self.open:
            self.open.mark(name, at)

    def speech_starts(self, at: float) -> None:
        """An answer begins: that of the open turn, or one without a question.

        A turn whose answer was stopped is over then, also if its last sound is still to be played.
        """
        if self.open and "tts stop" in self.open.times:
            self.end(self._over or "answered")
        turn = self.open or self.begin(spoken=False)
        turn.mark("tts start", at)

    def speech_stops(self, at: float, *, playing: bool) -> None:
        """The server has said everything; the turn ends when that is played."""
        if self.open and "tts start" in self.open.times:
            self.open.mark("tts stop", at)
            self._finish("answered", playing=playing)

    def interrupt(self) -> None:
        """The user interrupts the answer; the turn ends when the server has ended it."""
        self._over = "aborted"

    def closed(self, *, playing: bool) -> None:
        """The channel is gone; the turn ends when what is left is played."""
        if self.open is None:
            return
        if self._over == "aborted" or "tts start" not in self.open.times:
            self.end(self._over or "closed")
            return
        self._finish("answered" if "tts stop" in self.open.times else "closed", playing=playing)

    def played(self, at: float, pcm: bytes, sample_rate: int) -> None:
        if self.on_sound:
            self.on_sound(pcm, sample_rate)
        turn = self.open
        if turn is None or "tts start" not in turn.times:
            return
        turn.sample_rate = sample_rate
        turn.pieces.append((at, pcm))
        sample = first_audible(pcm)
        if sample is not None:
            turn.mark("first audible", at + sample / sample_rate)

    def falter(self, seconds: float) -> None:
        """The answer went silent inside a sentence for so long."""
        if self.open:
            self.open.gaps.append(seconds)

    def drained(self, at: float) -> None:
        """Nothing sounds any more."""
        if self.open and self._over and "tts start" in self.open.times:
            self.open.times["playback end"] = at
            if self._over != "aborted" or "tts stop" in self.open.times:
                self.end(self._over)

    def end(self, outcome: Outcome) -> None:
        """End the open turn, if there is one; an answer without any sound counts as silent."""
        turn, self.open, self._over = self.open, None, None
        if turn is None:
            return
        silent = outcome == "answered" and "first audible" not in turn.times
        turn.outcome = "silent" if silent else outcome
        self._ended()

    def _finish(self, outcome: Outcome, *, playing: bool) -> None:
        self._over = self._over or outcome
        if not playing:
            self.end(self._over)

"""Cut a session's audio into utterances."""

from dataclasses import dataclass

from fleet.core.endpointing import (
    LONGEST_MS,
    PREROLL_MS,
    START,
    STAY,
    WINDOW_MS,
    Ended,
    Endpointer,
    Paused,
    PauseFinder,
    Started,
)
from fleet.core.ports import ASR_RATE

BYTES_PER_MS = ASR_RATE * 2 // 1000
KEPT_SECONDS = 5.0
"""How long an utterance that was put back waits for what follows."""
OVER_ECHO_MS = 600.0
"""Audio kept in front of an utterance, beyond `PREROLL_MS`, where the server cancels an echo: over it a user is often
noticed only at the second word."""
_FORGET_MS = 300.0
"""Audio in front of an utterance that is forgotten together: to look with each frame costs more."""
LEAST_VOICED_MS = 60.0
"""A push-to-talk recording with less speech than this is silent."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """Speech with a little silence around it."""

    pcm: bytes
    voiced_ms: float
    """Milliseconds of speech."""
    ended_at: float
    """When the edge received the last speech, on the loop's clock; it was spoken one packet and one way earlier."""

    @property
    def began_at(self) -> float:
        """The earliest time at which its audio began."""
        return self.ended_at - len(self.pcm) / BYTES_PER_MS / 1000


@dataclass(frozen=True, slots=True)
class PausedUtterance:
    """The utterance until a pause, which may be its end."""

    so_far: Utterance


Collected = Utterance | PausedUtterance | bool
"""The result of a frame: an utterance that silence has ended, a pause in one, or whether the frame is speech in one."""


class _Gap:
    """Tells a pause from a lost packet, whose frame is nothing but zeros: after such a one the next frame tells."""

    __slots__ = ("_doubtful",)

    def __init__(self) -> None:
        self._doubtful = False

    def is_pause(self, pcm: bytes, speech: float, *, begins: bool) -> bool:
        """Take the next frame; `begins` is whether a pause would begin with it."""
        before, self._doubtful = self._doubtful and speech < STAY, begins and not any(pcm)
        return before or (begins and not self._doubtful)


class _Before(list[bytes]):
    """The frames in front of an utterance.

    Args:
        ms: Audio that may be needed.
    """

    __slots__ = ("_needed", "most")

    def __init__(self, ms: float) -> None:
        super().__init__()
        self._needed = ms * BYTES_PER_MS
        self.most = 1
        """Frames that may be here: to measure them each time costs more."""

    def keep(self, pcm: bytes) -> None:
        """Keep a frame."""
        self.append(pcm)
        if len(self) >= self.most:
            self.forget()

    def take(self, ms: float) -> list[bytes]:
        """Return the frames of the last so many milliseconds; forget all."""
        first = len(self)
        while first and ms > 0:
            first -= 1
            ms -= len(self[first]) / BYTES_PER_MS
        taken = self[first:]
        self.clear()
        return taken

    def forget(self) -> None:
        """Forget what is certainly not needed, however long each frame is."""
        sizes = list(map(len, self))
        longest = max(sizes)
        del self[: max(0, int((sum(sizes) - self._needed) / longest))]
        self.most = max(len(self), int(self._needed / longest)) + max(1, int(_FORGET_MS * BYTES_PER_MS / longest))


class UtteranceCollector:
    """Collects the frames of one listening period.

    Args:
        endpoint_ms: Silence that ends an utterance; None when only the user ends it (push-to-talk).
        pause_ms: Silence that is a pause.
        further_ms: Audio kept in front of an utterance, beyond `PREROLL_MS`.
    """

    __slots__ = (
        "_before",
        "_ended_at",
        "_endpoint",
        "_gap",
        "_kept",
        "_length_ms",
        "_pauses",
        "_pieces",
        "overlap_ms",
        "recording",
        "voiced_ms",
    )

    def __init__(self, endpoint_ms: float | None, pause_ms: float = LONGEST_MS, further_ms: float = 0.0) -> None:
        self._endpoint = None if endpoint_ms is None else Endpointer(endpoint_ms, pause_ms, PREROLL_MS + further_ms)
        self._pauses = PauseFinder(pause_ms)
        self._before = _Before(WINDOW_MS + PREROLL_MS + further_ms)
        self._pieces: list[bytes] = []
        self._length_ms = 0.0
        self._ended_at = 0.0
        self._kept: Utterance | None = None
        self._gap = _Gap()
        self.recording = endpoint_ms is None
        """Whether an utterance is under way."""
        self.voiced_ms = 0.0
        """Speech in the utterance that is under way."""
        self.overlap_ms = 0.0
        """Speech in it since `mark_overlap`."""

    @property
    def pressed(self) -> bool:
        """Whether only the user ends an utterance."""
        return self._endpoint is None

    @property
    def silence_ms(self) -> float:
        """Time since the last speech of the utterance that is under way; 0 with push-to-talk."""
        return self._endpoint.silence_ms if self._endpoint else 0.0

    def commit(self) -> Utterance:
        """End the utterance that is under way, and return it."""
        if self._endpoint:
            self._endpoint.reset()
        return self._take()

    def rejoin(self, utterance: Utterance) -> None:
        """Put an utterance back before the one that is under way, or else before one that follows soon."""
        self._kept = utterance
        if self.recording:
            self._join(utterance.ended_at)

    def mark_overlap(self) -> None:
        """Begin to count speech during an answer."""
        self.overlap_ms = 0.0

    def add_silence(self, pcm: bytes, speech: float) -> bool:
        """Take the next frame if it changes nothing, as it is silence after silence outside of an utterance.

        Otherwise do nothing, and return False.
        """
        endpoint = self._endpoint
        if self.recording or speech >= START or endpoint is None or endpoint.window:
            return False
        # What `keep` does, without its call.
        before = self._before
        before.append(pcm)
        if len(before) >= before.most:
            before.forget()
        return True

    def add(self, pcm: bytes, speech: float, now: float) -> Collected:
        """Take the next frame."""
        ms = len(pcm) / BYTES_PER_MS
        if self._endpoint is None:
            return self._add_pressed(pcm, speech, ms, now)
        event = self._endpoint.step(speech, ms)
        if not self.recording:
            self._before.keep(pcm)
            if not isinstance(event, Started):
                return False
            self._begin(event, now)
            return True
        self._append(pcm, speech, ms, now)
        if isinstance(event, Ended):
            return self._take()
        pauses = self._gap.is_pause(pcm, speech, begins=isinstance(event, Paused))
        return PausedUtterance(self.so_far()) if pauses else speech >= START

    def finish(self) -> Utterance | None:
        """Return the utterance when the user has ended the recording; None if there was too little speech."""
        if not self.recording or self.voiced_ms < LEAST_VOICED_MS:
            return None
        return self._take()

    def _add_pressed(self, pcm: bytes, speech: float, ms: float, now: float) -> Collected:
        if self._length_ms >= LONGEST_MS:
            return False
        self._append(pcm, speech, ms, now)
        begins = self._pauses.step(speech, ms) and self.voiced_ms >= LEAST_VOICED_MS
        pauses = self._gap.is_pause(pcm, speech, begins=begins)
        return PausedUtterance(self.so_far()) if pauses else speech >= START

    def _begin(self, started: Started, now: float) -> None:
        self._pieces = self._before.take(started.back_ms)
        self._length_ms = sum(map(len, self._pieces)) / BYTES_PER_MS
        self._ended_at, self.recording = now, True
        self.voiced_ms = self.overlap_ms = started.voiced_ms
        self._join(now)

    def _join(self, now: float) -> None:
        """Put what was kept before the utterance, if it is recent; of a very long one its end."""
        kept, self._kept = self._kept, None
        if kept and now - kept.ended_at <= KEPT_SECONDS:
            self._pieces.insert(0, kept.pcm[-int(LONGEST_MS * BYTES_PER_MS) :])
            self.voiced_ms += kept.voiced_ms

    def _append(self, pcm: bytes, speech: float, ms: float, now: float) -> None:
        self._pieces.append(pcm)
        self._length_ms += ms
        if speech >= START:
            self.voiced_ms += ms
            self.overlap_ms += ms
            self._ended_at = now

    def _take(self) -> Utterance:
        utterance = self.so_far()
        self._pieces, self._length_ms = [], 0.0
        self.voiced_ms = self.overlap_ms = 0.0
        self.recording = self._endpoint is None
        return utterance

    def so_far(self) -> Utterance:
        """Return the utterance that is under way, as far as it was heard."""
        return Utterance(b"".join(self._pieces), self.voiced_ms, self._ended_at)

"""What becomes of downlink audio: let through to the speaker, or lost, by state and time (contract 4.3)."""

from fleet.sim import toc
from fleet.sim.journal import Journal
from fleet.sim.playback import Playback
from fleet.sim.profile import Profile
from fleet.sim.pulse import Pulse
from fleet.sim.speaker import Gap
from fleet.sim.state import Machine, State
from fleet.sim.turns import TurnLog

_SENTENCE_BEFORE, _SENTENCE_AFTER = 0.3, 0.3
_NEVER = float("-inf")


class Intake:
    """Admits packets while the device speaks, and judges those that are lost.

    Args:
        profile: Which build this is.
        journal: Takes counters and breaches.
        machine: The state that decides.
        playback: Where admitted packets go.
        turns: Told of the first packet of an answer.
        pulse: Says whether this process was held up, which is no fault of the server's.
    """

    def __init__(
        self, profile: Profile, journal: Journal, machine: Machine, playback: Playback, turns: TurnLog, pulse: Pulse
    ) -> None:
        self._profile = profile
        self._journal = journal
        self._machine = machine
        self._playback = playback
        self._turns = turns
        self._pulse = pulse
        self._early: list[bytes] | None = None
        self._left = _NEVER
        self._aborted = _NEVER
        self._sentences: list[float] = []
        self._gaps: list[Gap] = []
        self.frame_ms = 60
        """What the hello said a downlink packet lasts."""

    def begin(self) -> None:
        """The state speaking was entered; until `clear` whatever comes will be lost."""
        self._early = []
        self._sentences = []
        self._aborted = _NEVER

    def clear(self) -> None:
        """The decode queue is cleared."""
        early, self._early = self._early or [], None
        self._playback.clear()
        self._journal.count("downlink_cleared", len(early))
        if early and self._playback.loud(early):
            self._journal.violate("audio-before-clear", f"{len(early)} packets with sound were lost")

    def end(self) -> None:
        """The state speaking was left."""
        self._left = self._journal.clock()
        early, self._early = self._early or [], None
        for payload in early:
            # Left again before the queue was cleared: what came is played after all.
            self._playback.push(payload, toc.duration_ms(payload) / 1000)
        self._playback.speaker.end_answer()
        self.judge_gaps(final=True)

    def abort(self) -> None:
        """The user interrupted."""
        self._aborted = self._journal.clock()

    def sentence(self) -> None:
        """The server said that a sentence begins."""
        self._sentences.append(self._journal.clock())
        self._judge_abort(self._journal.clock())

    def take(self, payload: bytes) -> None:
        """Take one decrypted packet."""
        if self._machine.state is not State.SPEAKING:
            self._drop_outside(self._journal.clock())
            return
        self._judge_abort(self._journal.clock())
        self._note_first(self._journal.clock())
        seconds = self._judge_format(payload) / 1000
        if self._early is not None:
            self._early.append(payload)
        elif not self._playback.push(payload, seconds):
            self._journal.count("downlink_dropped_full")
            self._journal.violate("queue-overflow", f"more than {self._profile.queue} packets")
        self.judge_gaps()

    def judge_gaps(self, *, final: bool = False) -> None:
        """Judge the gaps that are old enough: a sentence's message may come after its audio."""
        limits, now = self._profile.limits, self._journal.clock()
        for gap in self._playback.speaker.take_gaps():
            if gap.seconds - self._pulse.lost(gap.at) > limits.underrun:
                self._gaps.append(gap)
        ripe = [gap for gap in self._gaps if final or gap.at + gap.seconds + _SENTENCE_AFTER < now]
        self._gaps = [gap for gap in self._gaps if gap not in ripe]
        for gap in ripe:
            until = gap.at + gap.seconds
            between = any(gap.at - _SENTENCE_BEFORE <= at <= until + _SENTENCE_AFTER for at in self._sentences)
            self._journal.count("pauses" if between else "underruns")
            self._journal.note("pause" if between else "underrun", gap.at, ms=round(gap.seconds * 1000))
            if not between:
                self._journal.violate("underrun", f"{gap.seconds * 1000:.0f} ms of silence", gap.at)
            elif gap.seconds > limits.pause:
                self._journal.violate("pause", f"{gap.seconds * 1000:.0f} ms between two sentences", gap.at)

    def _note_first(self, now: float) -> None:
        turn = self._turns.open
        if turn and "first packet" not in turn.times:
            turn.mark("first packet", now)
            self._journal.note("first packet", now)

    def _drop_outside(self, now: float) -> None:
        self._journal.count("downlink_dropped_state")
        if self._aborted > _NEVER and now - self._aborted <= self._profile.limits.after_abort:
            return
        since = now - self._left
        late = f", {since * 1000:.0f} ms after `tts stop`" if since < self._profile.limits.late_packets else ""
        self._journal.violate("audio-outside-speaking", f"in state {self._machine.state}{late}")

    def _judge_abort(self, now: float) -> None:
        if self._aborted > _NEVER and now - self._aborted > self._profile.limits.after_abort:
            self._journal.violate("audio-after-abort", f"{(now - self._aborted) * 1000:.0f} ms after the interruption")

    def _judge_format(self, payload: bytes) -> float:
        lasts = toc.duration_ms(payload)
        if lasts != self.frame_ms or toc.is_stereo(payload):
            stereo = ", stereo" if toc.is_stereo(payload) else ""
            self._journal.violate("audio-format", f"{lasts:g} ms{stereo} instead of {self.frame_ms} ms mono")
        return lasts

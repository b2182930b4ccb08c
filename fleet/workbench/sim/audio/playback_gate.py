"""Lets downlink audio through to the speaker, or drops it, by state and time (contract 4.3)."""

from dataclasses import dataclass

from fleet.workbench.sim.audio import toc
from fleet.workbench.sim.audio.gaps import GapAudit
from fleet.workbench.sim.audio.playback import Playback
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.turns import TurnLog
from fleet.workbench.sim.runtime.state import State, StateMachine

_NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class _Early:
    """A packet that came between entering the state speaking and the clearing of the queue."""

    at: float
    payload: bytes
    timestamp: int


class PlaybackGate:
    """Accepts packets while the device speaks, and judges those that are lost.

    Args:
        profile: Which build this is.
        journal: Takes counters and breaches.
        machine: The state that decides.
        playback: Where admitted packets go.
        turns: Takes the time of the first packet of an answer.
        gaps: Judges silence.
    """

    def __init__(
        self,
        profile: Profile,
        journal: Journal,
        machine: StateMachine,
        playback: Playback,
        turns: TurnLog,
        gaps: GapAudit,
    ) -> None:
        self._profile = profile
        self._journal = journal
        self._machine = machine
        self._playback = playback
        self._turns = turns
        self._gaps = gaps
        self._early: list[_Early] | None = None
        self._began = _NEVER
        self._left = _NEVER
        self._aborted = _NEVER
        self.frame_ms = 60
        """What the hello said a downlink packet lasts."""

    def begin(self) -> None:
        """An answer begins; until `clear` whatever comes will be lost."""
        self._early = []
        self._began = self._journal.clock()
        self._gaps.begin()
        self._aborted = _NEVER

    def clear(self) -> None:
        """The decode queue is cleared."""
        early, self._early = self._early or [], None
        self._playback.clear()
        self._journal.count("downlink_cleared", len(early))
        latest = self._journal.clock() - self._gaps.spread - self._gaps.held_up(self._began)
        blamed = [one.payload for one in early if one.at < latest]
        if blamed and self._playback.has_sound(blamed):
            self._journal.violate("audio-before-clear", f"{len(blamed)} packets with sound were lost")

    def end(self) -> None:
        """The answer is over; what is queued is still played."""
        self._left = self._journal.clock()
        early, self._early = self._early or [], None
        for one in early:
            # Left again before the queue was cleared: what came is played after all.
            self._playback.push(one.payload, toc.duration_ms(one.payload) / 1000, one.timestamp)
        self._playback.speaker.end_answer()
        self.judge_gaps(final=True)

    def abort(self) -> None:
        """The user interrupted."""
        self._aborted = self._journal.clock()

    def sentence(self) -> None:
        """The server said that a sentence begins."""
        self._gaps.sentence()
        self._judge_abort(self._journal.clock())

    def miss(self) -> None:
        """The network lost a packet."""
        self._gaps.grant(self.frame_ms / 1000)

    def take(self, payload: bytes, timestamp: int = 0) -> None:
        """Take one decrypted packet."""
        if not self._machine.accepts_audio:
            self._drop_outside(self._journal.clock())
            return
        now = self._journal.clock()
        self._judge_abort(now)
        self._note_first(now)
        seconds = self._judge_format(payload) / 1000
        if self._early is not None:
            self._early.append(_Early(now, payload, timestamp))
        elif not self._playback.push(payload, seconds, timestamp):
            self._journal.count("downlink_dropped_full")
            self._journal.violate("queue-overflow", f"more than {self._profile.queue} packets")
        self.judge_gaps()

    def judge_gaps(self, *, final: bool = False) -> None:
        """Judge the gaps that are old enough."""
        self._gaps.judge(self._playback.speaker.take_gaps(), final=final)

    def _note_first(self, now: float) -> None:
        turn = self._turns.open
        if turn and "first packet" not in turn.times:
            turn.mark("first packet", now)
            self._journal.note("first packet", now)
        if turn:
            turn.times["last packet"] = now

    def _drop_outside(self, now: float) -> None:
        self._journal.count("downlink_dropped_state")
        if self._aborted > _NEVER and self._after_abort(now) <= self._profile.limits.after_abort + self._gaps.spread:
            return
        since = now - self._left
        if since <= self._gaps.spread or (self._gaps.spread and self._machine.state is State.LISTENING):
            # The network shifts messages against datagrams by so much.
            return
        late = f", {since * 1000:.0f} ms after `tts stop`" if since < self._profile.limits.late_packets else ""
        self._journal.violate("audio-outside-speaking", f"in state {self._machine.state}{late}")

    def _judge_abort(self, now: float) -> None:
        allowed = self._profile.limits.after_abort + self._gaps.spread
        if self._aborted > _NEVER and self._after_abort(now) > allowed:
            self._journal.violate("audio-after-abort", f"{(now - self._aborted) * 1000:.0f} ms after the interruption")

    def _after_abort(self, now: float) -> float:
        """Return the seconds since the interruption in which this process ran."""
        return now - self._aborted - self._gaps.held_up(self._aborted)

    def _judge_format(self, payload: bytes) -> float:
        lasts = toc.duration_ms(payload)
        if lasts != self.frame_ms or toc.is_stereo(payload):
            stereo = ", stereo" if toc.is_stereo(payload) else ""
            self._journal.violate("audio-format", f"{lasts:g} ms{stereo} instead of {self.frame_ms} ms mono")
        return lasts

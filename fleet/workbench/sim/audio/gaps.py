"""Silence inside answers: how much of it is audible, and who caused it (contract 4.3)."""

from collections.abc import Callable
from dataclasses import dataclass

from fleet.workbench.sim.audio.speaker import Gap
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.records.loop_lag import LoopLag

_SENTENCE_BEFORE, _SENTENCE_AFTER = 0.3, 0.3
_AUDIBLE = 0.01
"""Seconds of silence from which on a listener hears a gap."""


@dataclass(frozen=True, slots=True)
class _Silence:
    """A gap that is yet to be judged; `seconds` without the time for which this process stood still."""

    gap: Gap
    seconds: float
    blamed: bool
    """Whether the server caused it, and not the network."""


class GapAudit:
    """Separates silence caused by the server from pauses, and from packets that the network lost.

    Args:
        profile: Whose limits count.
        journal: Takes counters and breaches.
        loop_lag: Says whether this process was held up.
        spread: Seconds by which the network shifts packets against each other.
        heard: Given the seconds of each gap inside a sentence, whoever caused it.
    """

    def __init__(
        self,
        profile: Profile,
        journal: Journal,
        loop_lag: LoopLag,
        spread: float = 0.0,
        heard: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._heard = heard
        self._limits = profile.limits
        self._journal = journal
        self._loop_lag = loop_lag
        self.spread = spread
        self._sentences: list[float] = []
        self._waiting: list[_Silence] = []
        self._granted = 0.0
        self.kept = 0.0
        """Seconds of the present answer that the network lost."""

    def held_up(self, since: float) -> float:
        """Return for how many seconds this process was stalled; messages wait meanwhile, datagrams do not."""
        return self._loop_lag.stalled_since(since)

    def begin(self) -> None:
        """An answer begins."""
        self._sentences = []
        self._granted, self.kept = self.spread, 0.0

    def sentence(self) -> None:
        """A sentence begins."""
        self._sentences.append(self._journal.clock())

    def grant(self, seconds: float) -> None:
        """The network lost so many seconds of sound."""
        self._granted += seconds
        self.kept += seconds

    def judge(self, gaps: list[Gap], *, final: bool = False) -> None:
        """Take new gaps, and judge those that are old enough: a sentence's message may come after its audio."""
        now = self._journal.clock()
        for gap in gaps:
            self._weigh(gap)
        ripe = [one for one in self._waiting if final or one.gap.at + one.gap.seconds + _SENTENCE_AFTER < now]
        self._waiting = [one for one in self._waiting if one not in ripe]
        for one in ripe:
            self._tell(one)

    def _weigh(self, gap: Gap) -> None:
        seconds = gap.seconds - self._loop_lag.stalled_since(gap.at)
        if seconds < _AUDIBLE:
            return
        long = seconds > self._limits.underrun
        blamed = long and seconds - self._granted > self._limits.underrun
        if long and not blamed:
            self._granted = max(self.spread, self._granted - gap.seconds)
            self._journal.count("underruns_of_the_network")
        self._waiting.append(_Silence(gap, seconds, blamed))

    def _tell(self, silence: _Silence) -> None:
        gap = silence.gap
        until = gap.at + gap.seconds
        between = any(gap.at - _SENTENCE_BEFORE <= at <= until + _SENTENCE_AFTER for at in self._sentences)
        if not between:
            self._count(silence)
        if not silence.blamed:
            return
        self._journal.count("pauses" if between else "underruns")
        self._journal.note("pause" if between else "underrun", gap.at, ms=round(gap.seconds * 1000))
        if not between:
            self._journal.violate("underrun", f"{gap.seconds * 1000:.0f} ms of silence", gap.at)
        elif silence.seconds > self._limits.pause:
            self._journal.violate("pause", f"{gap.seconds * 1000:.0f} ms between two sentences", gap.at)

    def _count(self, silence: _Silence) -> None:
        """Count what a listener hears: once loss has used up the lead, each lost packet is a gap."""
        ms = round(silence.seconds * 1000)
        self._journal.count("gaps")
        self._journal.count("gaps_ms", ms)
        self._journal.peak("gap_longest_ms", ms)
        self._journal.note("gap", silence.gap.at, ms=ms)
        self._heard(silence.seconds)

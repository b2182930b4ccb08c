"""Silence inside answers, and whose fault it is (contract 4.3)."""

from fleet.sim.journal import Journal
from fleet.sim.profile import Profile
from fleet.sim.pulse import Pulse
from fleet.sim.speaker import Gap

_SENTENCE_BEFORE, _SENTENCE_AFTER = 0.3, 0.3


class Gaps:
    """Tells silence that the server is to blame for from pauses, and from what the network kept.

    Args:
        profile: Whose limits count.
        journal: Takes counters and breaches.
        pulse: Says whether this process was held up.
        spread: Seconds by which the network shifts packets against each other.
    """

    def __init__(self, profile: Profile, journal: Journal, pulse: Pulse, spread: float = 0.0) -> None:
        self._limits = profile.limits
        self._journal = journal
        self._pulse = pulse
        self.spread = spread
        self._sentences: list[float] = []
        self._waiting: list[Gap] = []
        self._granted = 0.0
        self.kept = 0.0
        """Seconds of the present answer that the network kept."""

    def held_up(self, since: float) -> float:
        """Return for how many seconds this process came late around then: messages wait for it, datagrams do not."""
        return self._pulse.lost(since)

    def begin(self) -> None:
        """An answer begins."""
        self._sentences = []
        self._granted, self.kept = self.spread, 0.0

    def sentence(self) -> None:
        """A sentence begins."""
        self._sentences.append(self._journal.clock())

    def grant(self, seconds: float) -> None:
        """So much sound is missing through no fault of the server's."""
        self._granted += seconds
        self.kept += seconds

    def judge(self, gaps: list[Gap], *, final: bool = False) -> None:
        """Take new gaps, and judge those that are old enough: a sentence's message may come after its audio."""
        now = self._journal.clock()
        for gap in gaps:
            if gap.seconds - self._pulse.lost(gap.at) - self._granted > self._limits.underrun:
                self._waiting.append(gap)
            elif gap.seconds - self._pulse.lost(gap.at) > self._limits.underrun:
                self._granted = max(self.spread, self._granted - gap.seconds)
                self._journal.count("underruns_of_the_network")
        ripe = [gap for gap in self._waiting if final or gap.at + gap.seconds + _SENTENCE_AFTER < now]
        self._waiting = [gap for gap in self._waiting if gap not in ripe]
        for gap in ripe:
            self._tell(gap)

    def _tell(self, gap: Gap) -> None:
        until = gap.at + gap.seconds
        between = any(gap.at - _SENTENCE_BEFORE <= at <= until + _SENTENCE_AFTER for at in self._sentences)
        self._journal.count("pauses" if between else "underruns")
        self._journal.note("pause" if between else "underrun", gap.at, ms=round(gap.seconds * 1000))
        if not between:
            self._journal.violate("underrun", f"{gap.seconds * 1000:.0f} ms of silence", gap.at)
        elif gap.seconds > self._limits.pause:
            self._journal.violate("pause", f"{gap.seconds * 1000:.0f} ms between two sentences", gap.at)

"""Watches on the main loop's tick that the server ends what it began."""

from fleet.sim.body import Body
from fleet.sim.owner import Owner
from fleet.sim.state import State


class Vigil:
    """Watches that the server ends what it began."""

    def __init__(self, owner: Owner, body: Body) -> None:
        self._owner = owner
        self._body = body
        self._journal = owner.journal
        self._began = 0.0
        self._interrupted: float | None = None
        self._told = False

    def speech_began(self) -> None:
        self._began = self._journal.clock()
        self._told = False

    def interrupted(self) -> None:
        self._interrupted = self._journal.clock()

    def speech_ended(self, received: float) -> None:
        if self._interrupted is not None:
            self._judge_interruption(received, self._interrupted)
        elif self._body.machine.state is State.SPEAKING and self._body.playback.idle:
            last = self._body.playback.speaker.busy_until
            if last and last > self._began and received - last > self._owner.profile.limits.late_stop:
                self._journal.violate("stop-late", f"{received - last:.2f} s after the last audio")
        self._interrupted = None

    async def look(self) -> None:
        now = self._journal.clock()
        self._body.intake.judge_gaps()
        if self._interrupted is not None and now - self._interrupted > self._owner.profile.limits.abort_answer:
            self._judge_interruption(now, self._interrupted)
            self._interrupted = None
        if self._body.machine.state is not State.SPEAKING or self._told or not self._body.playback.idle:
            return
        silent = now - max(self._began, self._body.playback.speaker.busy_until or 0.0)
        if silent > self._owner.profile.limits.stuck:
            self._told = True
            self._journal.violate("stuck-speaking", f"{silent:.0f} s without audio")

    def _judge_interruption(self, now: float, since: float) -> None:
        if now - since > self._owner.profile.limits.abort_answer:
            self._journal.violate("abort-unanswered", f"no `tts stop` within {now - since:.2f} s")

"""Watches on the main loop's tick that the server ends what it began."""

from fleet.workbench.sim.firmware.parts import Body
from fleet.workbench.sim.runtime.context import Owner
from fleet.workbench.sim.runtime.state import State


class Vigil:
    """Watches that the server ends what it began."""

    def __init__(self, owner: Owner, body: Body) -> None:
        self._owner = owner
        self._body = body
        self._journal = owner.journal
        self._began = 0.0
        self._interrupted: float | None = None
        self._told = False
        self._deserted = False

    def speech_began(self) -> None:
        self._began = self._journal.clock()
        self._told = False

    def interrupted(self) -> None:
        self._interrupted = self._journal.clock()

    def speech_ended(self, received: float) -> None:
        if self._interrupted is not None:
            self._judge_interruption(received, self._interrupted)
        elif self._body.machine.admits and self._body.playback.idle:
            last = self._body.playback.speaker.busy_until
            allowed = self._owner.profile.limits.late_stop + self._body.gaps.spread + self._body.gaps.kept
            if last and last > self._began and received - last > allowed:
                self._journal.violate("stop-late", f"{received - last:.2f} s after the last audio")
        self._interrupted = None

    async def look(self) -> None:
        now = self._journal.clock()
        self._body.intake.judge_gaps()
        self._watch_listening()
        if self._interrupted is not None and now - self._interrupted > self._owner.profile.limits.abort_answer:
            self._judge_interruption(now, self._interrupted)
            self._interrupted = None
        if not self._body.machine.admits or self._told or not self._body.playback.idle:
            return
        silent = now - max(self._began, self._body.playback.speaker.busy_until or 0.0)
        if silent > self._owner.profile.limits.stuck:
            self._told = True
            self._journal.violate("stuck-speaking", f"{silent:.0f} s without audio")

    def _watch_listening(self) -> None:
        listening = self._body.machine.state is State.LISTENING and self._body.microphone.running
        unheard = listening and self._body.channel.quiet > self._owner.profile.limits.unheard
        if unheard and not self._deserted:
            self._journal.violate("stuck-listening", f"nothing from the server for {self._body.channel.quiet:.0f} s")
        self._deserted = unheard

    def _judge_interruption(self, now: float, since: float) -> None:
        if now - since > self._owner.profile.limits.abort_answer + self._body.gaps.spread:
            self._journal.violate("abort-unanswered", f"no `tts stop` within {now - since:.2f} s")

"""Checks on each tick of the main loop that the server ends what it began."""

from fleet.workbench.sim.firmware.parts import DeviceParts
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.state import State


class ResponseMonitor:
    """Judges `tts stop` that is late or missing, and sessions that the server forgets."""

    def __init__(self, context: DeviceContext, parts: DeviceParts) -> None:
        self._context = context
        self._parts = parts
        self._journal = context.journal
        self._began = 0.0
        self._interrupted: float | None = None
        self._reported = False
        self._silence_reported = False

    def speech_began(self) -> None:
        self._began = self._journal.clock()
        self._reported = False

    def interrupted(self) -> None:
        self._interrupted = self._journal.clock()

    def speech_ended(self, received: float) -> None:
        if self._interrupted is not None:
            self._judge_interruption(received, self._interrupted)
        elif self._parts.machine.accepts_audio and self._parts.playback.is_idle():
            last = self._parts.playback.speaker.busy_until
            allowed = self._context.profile.limits.late_stop + self._parts.gaps.spread + self._parts.gaps.kept
            if last and last > self._began and received - last - self._parts.gaps.held_up(last) > allowed:
                self._journal.violate("stop-late", f"{received - last:.2f} s after the last audio")
        self._interrupted = None

    async def look(self) -> None:
        now = self._journal.clock()
        self._parts.gate.judge_gaps()
        self._watch_listening()
        if self._interrupted is not None and self._judge_interruption(now, self._interrupted):
            self._interrupted = None
        if not self._parts.machine.accepts_audio or self._reported or not self._parts.playback.is_idle():
            return
        since = max(self._began, self._parts.playback.speaker.busy_until or 0.0)
        silent = now - since - self._parts.gaps.held_up(since)
        if silent > self._context.profile.limits.stuck:
            self._reported = True
            self._journal.violate("stuck-speaking", f"{silent:.0f} s without audio")

    def _watch_listening(self) -> None:
        listening = self._parts.machine.state is State.LISTENING and self._parts.microphone.running
        unheard = listening and self._parts.channel.quiet > self._context.profile.limits.unheard
        if unheard and not self._silence_reported:
            self._journal.violate("stuck-listening", f"nothing from the server for {self._parts.channel.quiet:.0f} s")
        self._silence_reported = unheard

    def _judge_interruption(self, now: float, since: float) -> bool:
        """Return whether the limit for an answer is over, and blame the server beyond what the network may take."""
        waited = now - since - self._parts.gaps.held_up(since)
        limit = self._context.profile.limits.abort_answer
        if waited > limit + self._parts.gaps.spread:
            self._journal.violate("abort-unanswered", f"no `tts stop` within {waited:.2f} s")
        return waited > limit

"""The device's mind: what the user's and the server's doings lead to, all of it on the main loop (contract 5)."""

from collections.abc import Awaitable, Callable
from functools import partial

from fleet.workbench.sim.firmware.notifications import Notifier
from fleet.workbench.sim.firmware.parts import Body
from fleet.workbench.sim.firmware.response_monitor import Vigil
from fleet.workbench.sim.firmware.state_actions import Stance
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.profiles.profile import Mode
from fleet.workbench.sim.runtime.context import Owner
from fleet.workbench.sim.runtime.main_loop import Flag
from fleet.workbench.sim.runtime.state import State, after_speech_starts, after_speech_stops

_EXCUSED_BY_PRESS = ("audio-outside-speaking",)
_CROSSING = 1.5
"""Seconds after a press without `abort` in which a server may find out that it did not cross with `tts start`."""


class Dialogue:
    """Works off events and tasks of the main loop.

    Args:
        owner: What outlives a restart.
        body: The parts.
    """

    def __init__(self, owner: Owner, body: Body) -> None:
        self._owner = owner
        self._body = body
        self._journal = owner.journal
        self._channel = body.channel
        self._stance = Stance(owner, body)
        self._wake_text = ""
        self._wake_packets: list[bytes] = []
        self._vigil = Vigil(owner, body)
        self.notifier = Notifier(owner, body, self._stance)
        doings: dict[Flag, Callable[[], Awaitable[None]]] = {
            Flag.ERROR: partial(self.hang_up, say_goodbye=False, failure="server not reachable"),
            Flag.BUTTON: self._press_button,
            Flag.PRESSED: self._press_to_talk,
            Flag.RELEASED: self._release,
            Flag.SEND_AUDIO: self._send_audio,
            Flag.WAKE_WORD: self._hear_wake_word,
            Flag.TICK: self._vigil.look,
        }
        for flag, work in doings.items():
            body.main_loop.on(flag, work)

    def boot(self) -> None:
        self._stance.go(State.IDLE)

    def wake(self, text: str, packets: list[bytes]) -> None:
        """The wake word is said; `packets` is the audio cached before it."""
        self._wake_text, self._wake_packets = text, packets
        self._body.main_loop.set(Flag.WAKE_WORD)

    async def start_speech(self) -> None:
        """`tts start` has its turn."""
        overhears = self._owner.profile.python and self._body.machine.mode == "realtime"
        if overhears and self._stance.state is State.LISTENING:
            self._vigil.speech_began()
            self._stance.overhear(begins=True)
            return
        following = after_speech_starts(self._stance.state)
        if following is None:
            return
        if self._stance.state is State.IDLE and not self._channel.live:
            self._journal.violate("speech-without-channel", "`tts start` to an idle device without a channel")
        self._vigil.speech_began()
        self._stance.go(following)

    async def stop_speech(self, received: float) -> None:
        """`tts stop` has its turn."""
        self._vigil.speech_ended(received)
        speaking = self._body.machine.admits
        if self._owner.profile.python:
            await self._stop_speech_in_python()
        following = after_speech_stops(self._stance.state, self._body.machine.mode)
        if following:
            self._stance.go(following)
        if speaking or self._owner.turns.interrupted:
            self._owner.turns.speech_stops(received, playing=not self._body.playback.idle)

    async def hang_up(self, *, say_goodbye: bool, failure: str = "") -> None:
        """Close the channel and go idle, and show a failure if there is one; what is queued is still played."""
        self.notifier.stop()
        self._stance.overhear(begins=False)
        await self._channel.close(say_goodbye=say_goodbye)
        self._owner.turns.closed(playing=not self._body.playback.idle)
        self._body.screen.clear()
        self._stance.go(State.IDLE)
        if failure:
            self._body.screen.fail(failure)
        self._owner.signal.notify()

    async def _stop_speech_in_python(self) -> None:
        """Do what the mode says, whatever the state.

        In realtime mode go on; in manual mode stop, though the button be held; else cut off what is queued, and say
        `listen start` at once.
        """
        if self._body.machine.overheard:
            self._stance.overhear(begins=False)
        elif self._body.machine.mode == "manual":
            self._stance.go(State.IDLE)
        elif self._body.machine.mode == "auto" and self._stance.state is not State.IDLE:
            self._journal.count("downlink_cut", self._body.playback.clear())
            if self._stance.state is State.LISTENING:
                await self._stance.say_listen()

    async def _press_button(self) -> None:
        self.notifier.stop()
        if self._stance.state is State.IDLE:
            await self._open_and_listen(self._owner.profile.mode)
        elif self._body.machine.admits:
            await self._interrupt("")
        elif self._stance.state is State.LISTENING:
            await self.hang_up(say_goodbye=True)

    async def _press_to_talk(self) -> None:
        self.notifier.stop()
        if self._stance.state is State.IDLE:
            await self._open_and_listen("manual")
        elif self._stance.state is State.SPEAKING:
            if self._owner.profile.python:
                # It neither says `abort` nor waits for `tts stop` (src/bootstrap/session.py, start_listening).
                self._journal.note("press over an answer")
                self._journal.excuse(_EXCUSED_BY_PRESS, _CROSSING)
            else:
                await self._interrupt("")
            self._stance.listen("manual")

    async def _release(self) -> None:
        self.notifier.stop()
        if self._stance.state is State.LISTENING:
            await self._channel.send(outbound.listen_stop(self._channel.session))
            self._journal.note("released")
            self._stance.go(State.IDLE)

    async def _hear_wake_word(self) -> None:
        profile = self._owner.profile
        self.notifier.stop()
        if self._body.machine.deaf:
            self._journal.note("wake word unheard")
        elif self._stance.state is State.IDLE and profile.wake_lost_when_open and self._channel.opened:
            # The detection stops the detector, and only the next state switches it on again (2.2.2 to 2.3.0).
            self._body.machine.deaf = True
            self._journal.note("wake word lost")
        elif self._stance.state is State.IDLE:
            # The button alone makes firmware listen in manual mode.
            await self._open_and_listen("auto" if profile.mode == "manual" else profile.mode, woken=True)
        elif self._body.machine.admits:
            await self._interrupt("wake_word_detected")
            self._body.microphone.drop_waiting()
            if profile.wake_interrupts and not profile.python:
                self._stance.listen(profile.mode, afresh=True)

    async def _open_and_listen(self, mode: Mode, *, woken: bool = False) -> None:
        if not self._channel.opened:
            self._stance.go(State.CONNECTING)
            if not await self._channel.open():
                self._stance.go(State.IDLE)
                self._body.screen.fail("no answer from the server")
                return
        if woken and self._owner.profile.wake_packets:
            for packet in self._wake_packets:
                await self._channel.send_audio(packet)
            await self._channel.send(outbound.detect(self._channel.session, self._wake_text))
            self._journal.note("wake word", packets=len(self._wake_packets))
        self._stance.listen(mode)

    async def _interrupt(self, reason: str) -> None:
        await self._channel.send(outbound.abort(self._channel.session, reason))
        self._journal.note("abort", reason=reason or "button")
        self._vigil.interrupted()
        self._body.intake.abort()
        self._owner.turns.interrupt()
        if self._owner.profile.python and self._body.machine.mode == "auto":
            self._stance.listen("auto")

    async def _send_audio(self) -> None:
        while packet := self._body.microphone.pop():
            if not await self._channel.send_audio(packet.payload, packet.timestamp):
                return

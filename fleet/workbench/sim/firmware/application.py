"""The application: what the device does when the user or the server does something, on the main loop (contract 5)."""

from collections.abc import Awaitable, Callable
from functools import partial

from fleet.workbench.sim.firmware.notifications import NotificationPlayer
from fleet.workbench.sim.firmware.parts import DeviceParts
from fleet.workbench.sim.firmware.response_monitor import ResponseMonitor
from fleet.workbench.sim.firmware.state_actions import StateActions
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.profiles.profile import Mode
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.main_loop import Flag
from fleet.workbench.sim.runtime.state import State, after_speech_starts, after_speech_stops

_EXCUSED_BY_PRESS = ("audio-outside-speaking",)
_CROSSING = 1.5
"""Seconds after a press without `abort` in which a server may find out that it did not cross with `tts start`."""


class Application:
    """Works off events and tasks of the main loop.

    Args:
        context: What the device keeps over a restart.
        parts: The parts.
    """

    def __init__(self, context: DeviceContext, parts: DeviceParts) -> None:
        self._context = context
        self._parts = parts
        self._journal = context.journal
        self._channel = parts.channel
        self._actions = StateActions(context, parts)
        self._wake_text = ""
        self._wake_packets: list[bytes] = []
        self._monitor = ResponseMonitor(context, parts)
        self.notifier = NotificationPlayer(context, parts, self._actions)
        doings: dict[Flag, Callable[[], Awaitable[None]]] = {
            Flag.ERROR: partial(self.hang_up, say_goodbye=False, failure="server not reachable"),
            Flag.BUTTON: self._press_button,
            Flag.PRESSED: self._press_to_talk,
            Flag.RELEASED: self._release,
            Flag.SEND_AUDIO: self._send_audio,
            Flag.WAKE_WORD: self._hear_wake_word,
            Flag.TICK: self._monitor.look,
        }
        for flag, work in doings.items():
            parts.main_loop.on(flag, work)

    def boot(self) -> None:
        self._actions.go(State.IDLE)

    def wake(self, text: str, packets: list[bytes]) -> None:
        """The wake word is said; `packets` is the audio cached before it."""
        self._wake_text, self._wake_packets = text, packets
        self._parts.main_loop.set(Flag.WAKE_WORD)

    async def start_speech(self) -> None:
        """`tts start` has its turn."""
        overhears = self._context.profile.is_py_xiaozhi and self._parts.machine.mode == "realtime"
        if overhears and self._actions.state is State.LISTENING:
            self._monitor.speech_began()
            self._actions.play_while_listening(begins=True)
            return
        following = after_speech_starts(self._actions.state)
        if following is None:
            return
        if self._actions.state is State.IDLE and not self._channel.live:
            self._journal.violate("speech-without-channel", "`tts start` to an idle device without a channel")
        self._monitor.speech_began()
        self._actions.go(following)

    async def stop_speech(self, received: float) -> None:
        """`tts stop` has its turn."""
        self._monitor.speech_ended(received)
        speaking = self._parts.machine.accepts_audio
        if self._context.profile.is_py_xiaozhi:
            await self._stop_speech_in_python()
        following = after_speech_stops(self._actions.state, self._parts.machine.mode)
        if following:
            self._actions.go(following)
        if speaking or self._context.turns.interrupted:
            self._context.turns.speech_stops(received, playing=not self._parts.playback.is_idle())

    async def hang_up(self, *, say_goodbye: bool, failure: str = "") -> None:
        """Close the channel and go idle, and show a failure if there is one; what is queued is still played."""
        self.notifier.stop()
        self._actions.play_while_listening(begins=False)
        await self._channel.close(say_goodbye=say_goodbye)
        self._context.turns.closed(playing=not self._parts.playback.is_idle())
        self._parts.screen.clear()
        self._actions.go(State.IDLE)
        if failure:
            self._parts.screen.fail(failure)
        self._context.signal.notify()

    async def _stop_speech_in_python(self) -> None:
        """Do what the mode says, whatever the state.

        In realtime mode go on; in manual mode stop, though the button be held; else cut off what is queued, and say
        `listen start` at once.
        """
        if self._parts.machine.plays_while_listening:
            self._actions.play_while_listening(begins=False)
        elif self._parts.machine.mode == "manual":
            self._actions.go(State.IDLE)
        elif self._parts.machine.mode == "auto" and self._actions.state is not State.IDLE:
            self._journal.count("downlink_cut", self._parts.playback.clear())
            if self._actions.state is State.LISTENING:
                await self._actions.say_listen()

    async def _press_button(self) -> None:
        self.notifier.stop()
        if self._actions.state is State.IDLE:
            await self._open_and_listen(self._context.profile.mode)
        elif self._parts.machine.accepts_audio:
            await self._interrupt("")
        elif self._actions.state is State.LISTENING:
            await self.hang_up(say_goodbye=True)

    async def _press_to_talk(self) -> None:
        self.notifier.stop()
        if self._actions.state is State.IDLE:
            await self._open_and_listen("manual")
        elif self._actions.state is State.SPEAKING:
            if self._context.profile.is_py_xiaozhi:
                # It neither says `abort` nor waits for `tts stop` (src/bootstrap/session.py, start_listening).
                self._journal.note("press over an answer")
                self._journal.excuse(_EXCUSED_BY_PRESS, _CROSSING)
            else:
                await self._interrupt("")
            self._actions.listen("manual")

    async def _release(self) -> None:
        self.notifier.stop()
        if self._actions.state is State.LISTENING:
            await self._channel.send(outbound.listen_stop(self._channel.session))
            self._journal.note("released")
            self._actions.go(State.IDLE)

    async def _hear_wake_word(self) -> None:
        profile = self._context.profile
        self.notifier.stop()
        if self._parts.machine.wake_word_off:
            self._journal.note("wake word unheard")
        elif self._actions.state is State.IDLE and profile.wake_lost_when_open and self._channel.opened:
            # The detection stops the detector, and only the next state switches it on again (2.2.2 to 2.3.0).
            self._parts.machine.wake_word_off = True
            self._journal.note("wake word lost")
        elif self._actions.state is State.IDLE:
            # In manual mode firmware listens only while the button is pressed.
            await self._open_and_listen("auto" if profile.mode == "manual" else profile.mode, woken=True)
        elif self._parts.machine.accepts_audio:
            await self._interrupt("wake_word_detected")
            self._parts.microphone.drop_waiting()
            if profile.wake_interrupts and not profile.is_py_xiaozhi:
                self._actions.listen(profile.mode, afresh=True)

    async def _open_and_listen(self, mode: Mode, *, woken: bool = False) -> None:
        if not self._channel.opened:
            self._actions.go(State.CONNECTING)
            if not await self._channel.open():
                self._actions.go(State.IDLE)
                self._parts.screen.fail("no answer from the server")
                return
        if woken and self._context.profile.wake_packets:
            for packet in self._wake_packets:
                self._channel.send_audio(packet)
            await self._channel.send(outbound.detect(self._channel.session, self._wake_text))
            self._journal.note("wake word", packets=len(self._wake_packets))
        self._actions.listen(mode)

    async def _interrupt(self, reason: str) -> None:
        await self._channel.send(outbound.abort(self._channel.session, reason))
        self._journal.note("abort", reason=reason or "button")
        self._monitor.interrupted()
        self._parts.gate.abort()
        self._context.turns.interrupt()
        if self._context.profile.is_py_xiaozhi and self._parts.machine.mode == "auto":
            self._actions.listen("auto")

    async def _send_audio(self) -> None:
        while packet := self._parts.microphone.pop():
            if not self._channel.send_audio(packet.payload, packet.timestamp):
                return

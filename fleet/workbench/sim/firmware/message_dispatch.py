"""Dispatches the messages of the server: read at once on the MQTT task, handled on the main loop (contract 5.2)."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from fleet.workbench.sim.firmware.application import Application
from fleet.workbench.sim.firmware.parts import DeviceParts
from fleet.workbench.sim.firmware.screen import Screen
from fleet.workbench.sim.firmware.tool_runner import ToolRunner
from fleet.workbench.sim.messages import message
from fleet.workbench.sim.messages.legacy import crash_reason
from fleet.workbench.sim.messages.message import JsonObject, item, member, text
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.main_loop import Work


class RunningDevice(DeviceParts, Protocol):
    """The parts, the application, and what ends this boot."""

    application: Application
    tool_runner: ToolRunner

    def crash(self) -> None:
        """Restart without a goodbye."""

    async def restart(self) -> None:
        """Say goodbye, and restart."""


class MessageDispatcher:
    """Takes every message of the connection.

    Args:
        context: What the device keeps over a restart.
        device: The parts.
    """

    def __init__(self, context: DeviceContext, device: RunningDevice) -> None:
        self._context = context
        self._device = device
        self._journal = context.journal
        self._kinds: dict[str, Callable[[JsonObject], None]] = {
            "hello": self._take_hello,
            "tts": self._take_tts,
            "stt": self._take_stt,
            "llm": self._take_llm,
            "goodbye": self._take_goodbye,
            "system": self._take_system,
            "alert": self._take_alert,
            "mcp": self._take_mcp,
            "notify": self._take_notify,
        }

    def receive(self, payload: bytes, topic_bytes: int) -> None:
        """Take a message; what firmware does not know is ignored."""
        profile = self._context.profile
        if profile.heap is not None and len(payload) > profile.heap:
            self._journal.violate("heap", f"{len(payload)} bytes are lost for want of memory")
            return
        if profile.crashes and (reason := crash_reason(payload)):
            self._journal.violate("crash", reason)
            self._device.crash()
            return
        parsed = message.parse(payload)
        if parsed is None:
            self._journal.violate("json-invalid", f"{len(payload)} bytes")
            return
        if len(payload) + topic_bytes > message.SINGLE_FRAGMENT:
            self._journal.count("mqtt_fragmented")
        self._take(parsed, len(payload))

    def _take(self, parsed: JsonObject, size: int) -> None:
        channel = self._device.channel
        self._journal.judge(message.check(parsed, size, channel.live))
        channel.touch()
        kind = text(parsed, "type") or ""
        take = self._kinds.get(kind)
        if take is None:
            self._journal.count("mqtt_ignored")
            self._journal.note("ignored", type=kind)
            return
        take(parsed)

    def _schedule(self, task: Work) -> None:
        self._device.main_loop.schedule(task)

    def _schedule_view(self, change: Callable[[Screen], None]) -> None:
        """Change the screen when the main loop comes to it."""

        async def apply() -> None:
            change(self._device.screen)

        self._schedule(apply)

    def _take_hello(self, parsed: JsonObject) -> None:
        late, loop = self._context.faults.late_hello, asyncio.get_running_loop()
        if late:
            # Who waits and gives up before, does so also when this process was held up beyond both times.
            loop.call_later(late, loop.call_soon, self._device.channel.receive_hello, parsed)
        else:
            self._device.channel.receive_hello(parsed)

    def _take_tts(self, parsed: JsonObject) -> None:
        now, state = self._journal.clock(), text(parsed, "state")
        if state == "start":
            self._journal.note("tts start", now)
            self._context.turns.speech_starts(now)
            self._schedule(self._device.application.start_speech)
        elif state == "stop":
            self._journal.note("tts stop", now)
            self._schedule(partial(self._device.application.stop_speech, now))
        elif state == "sentence_start":
            sentence = text(parsed, "text") or ""
            self._journal.note("sentence", now, text=sentence)
            self._device.gate.sentence()
            self._schedule_view(lambda screen: screen.write("assistant", sentence))
            if self._context.turns.open:
                self._context.turns.open.sentences.append(sentence)

    def _take_stt(self, parsed: JsonObject) -> None:
        said = text(parsed, "text") or ""
        self._journal.note("stt", text=said)
        self._schedule_view(lambda screen: screen.write("user", said))
        self._context.turns.mark("stt", self._journal.clock())
        if self._context.turns.open:
            self._context.turns.open.transcript = said

    def _take_llm(self, parsed: JsonObject) -> None:
        emotion = text(parsed, "emotion")
        if emotion is None:
            return
        self._journal.note("llm", emotion=emotion)
        self._schedule_view(lambda screen: screen.face(emotion))
        if self._context.turns.open:
            self._context.turns.open.emotions.append(emotion)

    def _take_goodbye(self, parsed: JsonObject) -> None:
        named = item(parsed, "session_id")
        matches = named == self._device.channel.session
        if not matches and not (named is None and self._context.profile.goodbye_without_id):
            self._journal.note("goodbye ignored", session=named)
            return
        self._journal.note("goodbye", by="server", session=self._device.channel.session)
        self._schedule(partial(self._device.application.hang_up, say_goodbye=False))

    def _take_system(self, parsed: JsonObject) -> None:
        if text(parsed, "command") == "reboot":
            self._schedule(self._device.restart)
        else:
            self._journal.note("ignored", type="system", command=item(parsed, "command"))

    def _take_alert(self, parsed: JsonObject) -> None:
        status, words, emotion = (text(parsed, name) for name in ("status", "message", "emotion"))
        if status is not None and words is not None and emotion is not None:
            # On the MQTT task, before what waits for the main loop.
            self._device.screen.alert(status, words, emotion)

    def _take_mcp(self, parsed: JsonObject) -> None:
        request = member(parsed, "payload")
        if request:
            self._device.tool_runner.receive(request)

    def _take_notify(self, parsed: JsonObject) -> None:
        self._device.application.notifier.receive(parsed)

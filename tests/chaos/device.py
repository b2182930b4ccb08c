"""A light simulated device: the connections and states of stock firmware in auto mode, without playing what it hears.

It encodes no Opus while it runs and decodes none, so that a dozen cost little beside the servers. What it does not do
by itself its user does: `tests.chaos.person`.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal

import httpx2

from fleet.workbench.conformance.steering.script import mentioned
from fleet.workbench.conformance.verdict import Failed
from fleet.workbench.sim.bootstrap.ota import MqttAccess, read_mqtt
from fleet.workbench.sim.bootstrap.request import ask
from fleet.workbench.sim.messages import message, outbound, server_hello
from fleet.workbench.sim.messages.message import JsonObject, member, text
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.scripted.mqtt_connection import RawMqttConnection
from tests.chaos.channel import FRAME, Channel
from tests.chaos.hands import Hands
from tests.chaos.history import Turn
from tests.chaos.journal import Journal
from tests.chaos.wire import Wire

State = Literal["idle", "connecting", "listening", "speaking"]

HELLO_SECONDS = 10.0
SAY_SECONDS = 10.0
STALE_SECONDS = 120.0
"""After so long without a word of the server the channel counts as closed when the user wants something."""
PROFILE = find_profile("P1")


class Device:
    """One device; `running` is its power.

    Args:
        mac: Canonical.
        ota_url: Where it boots from.
        journal: Takes what it does, and all executions.
        chance: Its dice.
        reconnect: Seconds from the loss of MQTT to the next attempt; stock firmware has 10.
    """

    def __init__(self, mac: str, ota_url: str, journal: Journal, chance: random.Random, reconnect: float) -> None:
        self.mac = mac
        self.state: State = "idle"
        self.turn: Turn | None = None
        """Takes what concerns the user's newest utterance."""
        self.signal = ChangeSignal()
        self._broken: list[str] = []
        self._ota_url, self._journal, self._chance, self._reconnect = ota_url, journal, chance, reconnect
        self._clock = asyncio.get_running_loop().time
        self._hands = Hands(mac, PROFILE, journal, chance, self._reply)
        self._wire = Wire()

    @property
    def rules_broken(self) -> list[str]:
        """What the server did that firmware does not bear."""
        return [*self._broken, *self._hands.rules_broken]

    @property
    def online(self) -> bool:
        line = self._wire.line
        return line is not None and line.up

    @property
    def open(self) -> bool:
        """Whether there is a channel, as far as the device knows."""
        return self._wire.channel is not None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Boot, and stay connected while the block lasts; leaving it is a power cut."""
        access = await self._boot()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(work, name=f"{name} {self.mac}")
                for name, work in (
                    ("mqtt", self._stay_connected(access)),
                    ("microphone", self._capture()),
                    ("tools", self._hands.run()),
                )
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                self._close()

    async def press(self) -> bool:
        """Open the channel if there is none, and listen; False when the server does not let it."""
        channel = self._wire.channel
        if channel and self._clock() - self._wire.heard_at > STALE_SECONDS:
            self._close()
        if not self.open and not await self._hello():
            return False
        self._go("listening")
        return self._send(outbound.listen_start(self._wire.session, "auto"))

    async def say(self, packets: list[bytes]) -> float:
        """Say something; return which part was sent, all of it unless the device does not listen any more."""
        self._wire.speech.extend(packets)
        await self.until(SAY_SECONDS, lambda: not self._wire.speech or self.state != "listening")
        left = len(self._wire.speech)
        self._wire.speech.clear()
        return 1 - left / len(packets)

    def interrupt(self) -> None:
        """Press the button while it speaks."""
        self._send(outbound.abort(self._wire.session, ""))

    def hang_up(self) -> None:
        """Press the button while it listens."""
        self._send(outbound.goodbye(self._wire.session))
        self._close()
        self._go("idle")

    def reset(self) -> None:
        """Pull the plug of what hangs: no channel, idle."""
        self._close()
        self._go("idle")

    async def until(self, seconds: float, holds: Callable[[], bool]) -> bool:
        return await self.signal.within(seconds, holds)

    async def _boot(self) -> MqttAccess:
        async with httpx2.AsyncClient(timeout=10, trust_env=False) as client:
            access = read_mqtt(member(await ask(self._ota_url, self.mac, PROFILE, client), "mqtt"))
        if access is None:
            raise Failed("bootstrap gave no MQTT section")
        return access

    async def _stay_connected(self, access: MqttAccess) -> None:
        while True:
            line = RawMqttConnection(access, self._receive, None)
            try:
                if await line.connect() == 0:
                    await self._attend(line, access.keepalive / 2)
            except Failed as error:
                self._note("mqtt fails", reason=str(error))
            line.drop()
            self._lose()
            await asyncio.sleep(self._reconnect * self._chance.uniform(1.0, 1.2))

    async def _attend(self, line: RawMqttConnection, ping: float) -> None:
        self._wire.line = line
        self._note("mqtt up")
        while self._wire.early:
            self._receive("", self._wire.early.popleft())
        self.signal.notify()
        async with asyncio.TaskGroup() as group:
            pinging = group.create_task(line.keep_alive(ping), name=f"ping {self.mac}")
            await line.run()
            pinging.cancel()

    def _lose(self) -> None:
        """Miss from now on what the server sends; firmware shows nothing of it before it has something to send."""
        self._wire.line = None
        self._wire.early.clear()
        self._note("mqtt down")
        if self.turn:
            self.turn.deaf = True

    async def _hello(self) -> bool:
        self._go("connecting")
        self._wire.welcomed = False
        self._note("hello")
        if not self._send(outbound.hello(PROFILE)):
            return False
        welcomed = await self.until(HELLO_SECONDS, lambda: self._wire.welcomed or self.state != "connecting")
        if not welcomed or not self.open:
            self._note("hello unanswered")
            self._go("idle")
        return self.open

    async def _capture(self) -> None:
        loop, due = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        while True:
            channel = self._wire.channel
            if channel and self.state == "listening":
                self._wire.capture(channel)
                if not self._wire.speech:
                    self.signal.notify()
            due = max(due + FRAME, loop.time() - 2 * FRAME)
            await asyncio.sleep(max(0.0, due - loop.time()))

    def _receive(self, _: str, payload: bytes) -> None:
        if self._wire.line is None:
            # It came together with the CONNACK, before which nothing can be answered.
            self._wire.early.append(payload)
            return
        parsed = message.parse(payload)
        if parsed is None:
            self._broken.append(f"no JSON: {payload[:80]!r}")
            return
        self._wire.heard_at = self._clock()
        match text(parsed, "type"):
            case "hello":
                self._welcome(parsed)
            case "tts":
                self._take_speech(parsed)
            case "stt":
                self._take_transcript(text(parsed, "text") or "")
            case "goodbye" if text(parsed, "session_id") == self._wire.session:
                self._note("goodbye")
                self._close()
                self._go("idle")
            case "alert":
                self._show(f"{text(parsed, 'message')}")
            case "mcp":
                self._hands.take(member(parsed, "payload"))
        self.signal.notify()

    def _welcome(self, parsed: JsonObject) -> None:
        hello = server_hello.read(parsed)
        if hello is None:
            self._broken.append("a hello that firmware cannot use")
            return
        self._close()
        self._wire.session, self._wire.welcomed = hello.session, True
        self._wire.channel = Channel(hello, self._hear)
        self._note("welcome", session=hello.session)

    def _take_speech(self, parsed: JsonObject) -> None:
        state, turn = text(parsed, "state"), self.turn
        self._note(f"tts {state}", said=text(parsed, "text"))
        if state == "start" and self.state in ("idle", "listening"):
            self._go("speaking")
        elif state == "sentence_start" and turn and self.state == "speaking":
            _add(turn, text(parsed, "text") or "")
        elif state == "stop" and self.state == "speaking":
            self._go("listening")
            if turn and (turn.sentences or turn.packets):
                turn.stops += 1
            self._send(outbound.listen_start(self._wire.session, "auto"))

    def _take_transcript(self, said: str) -> None:
        self._note("stt", said=said)
        if self.turn and str(self.turn.mark) in said:
            self.turn.heard = True

    def _hear(self, at: float) -> None:
        self._wire.heard_at = at
        if self.turn and self.state == "speaking":
            self.turn.packets.append(at)

    def _reply(self, payload: str) -> None:
        self._send(outbound.mcp(self._wire.session, payload))

    def _send(self, frame: str) -> bool:
        """Publish; offline, firmware shows an error, closes the channel and goes idle."""
        line = self._wire.line
        if line is not None and line.up:
            line.publish(frame.encode())
            return True
        self._note("error alert", lost=json.loads(frame).get("type"))
        if self.turn:
            self.turn.failed = True
        self._close()
        self._go("idle")
        return False

    def _show(self, words: str) -> None:
        self._note("alert", words=words)
        if self.turn:
            self.turn.alerts.append(words)

    def _close(self) -> None:
        if self._wire.channel:
            self._wire.channel.close()
            self._wire.channel = None

    def _go(self, state: State) -> None:
        if state != self.state:
            self._note(state)
        self.state = state
        self.signal.notify()

    def _note(self, what: str, **fields: object) -> None:
        self._journal.note(self.mac, what, **fields)


def _add(turn: Turn, sentence: str) -> None:
    """Keep a sentence, unless it belongs to the answer of another turn."""
    if mentioned(sentence) in (None, turn.mark):
        turn.sentences.append(sentence)
    else:
        turn.notes.append(f"heard {sentence!r} of another turn")

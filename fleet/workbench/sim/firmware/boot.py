"""One boot of a device: its parts, wired, and the tasks that run them."""

import asyncio
import ssl
from collections.abc import Coroutine

from fleet.workbench.sim.audio.echo_path import Room
from fleet.workbench.sim.audio.echo_references import EchoReferences
from fleet.workbench.sim.audio.encoder import UplinkEncoder
from fleet.workbench.sim.audio.gaps import GapAudit
from fleet.workbench.sim.audio.microphone import Microphone
from fleet.workbench.sim.audio.playback import Playback
from fleet.workbench.sim.audio.playback_gate import PlaybackGate
from fleet.workbench.sim.bootstrap.ota import MqttAccess
from fleet.workbench.sim.connection.audio_channel import AudioChannel, ChannelEvents
from fleet.workbench.sim.connection.mqtt_client import MqttClient
from fleet.workbench.sim.firmware.application import Application
from fleet.workbench.sim.firmware.message_dispatch import MessageDispatcher
from fleet.workbench.sim.firmware.screen import Screen
from fleet.workbench.sim.firmware.tool_runner import ToolRunner
from fleet.workbench.sim.messages.server_hello import ServerHello
from fleet.workbench.sim.records.loop_lag import LoopLag
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.main_loop import Flag, MainLoop
from fleet.workbench.sim.runtime.state import StateMachine

_TICK = 1.0


class AudioParts:
    """The parts for audio.

    Args:
        context: What the device keeps over a restart.
    """

    def __init__(self, context: DeviceContext) -> None:
        profile, journal = context.profile, context.journal
        self._context = context
        self.loop_lag = LoopLag(journal.clock)
        self.main_loop = MainLoop()
        self.machine = StateMachine(profile.mode)
        self.screen = Screen(journal, context.signal.notify)
        self.references = EchoReferences(enabled=profile.aec)
        self.room = Room(profile.echo)
        encoder = UplinkEncoder(profile.frame_ms, profile.application)
        self.microphone = Microphone(
            encoder,
            self.references,
            journal.clock,
            context.signal,
            lambda: self.main_loop.set(Flag.SEND_AUDIO),
            self.room,
        )
        self.playback = Playback(journal, profile, self)
        self.gaps = GapAudit(profile, journal, self.loop_lag, context.network.spread, context.turns.falter)
        self.gate = PlaybackGate(profile, journal, self.machine, self.playback, context.turns, self.gaps)

    def played(self, at: float, pcm: bytes, sample_rate: int) -> None:
        """Add a packet to the turn that it belongs to."""
        self.room.play(at, pcm, sample_rate)
        turn = self._context.turns.open
        before = turn is not None and "first audible" in turn.times
        self._context.turns.played(at, pcm, sample_rate)
        if turn is not None and not before and "first audible" in turn.times:
            self._context.journal.note("first audible", turn.times["first audible"])

    def sounded(self, timestamp: int) -> None:
        """Keep the timestamp of what sounds, for the captured frames."""
        self.references.played(timestamp)

    def drained(self, at: float) -> None:
        """Note the end of all sound; it is heard later than firmware assumes, by the DMA buffers."""
        heard = at + self._context.profile.timing.dma
        self._context.journal.note("playback end", heard)
        self._context.turns.drained(heard)
        self.main_loop.set(Flag.DRAINED)
        self._context.signal.notify()


class Boot(AudioParts):
    """Runs from power-on until a restart is ordered.

    Args:
        context: What the device keeps over a restart.
        access: What bootstrap said.
        tls: Trust for MQTT on port 8883.
    """

    def __init__(self, context: DeviceContext, access: MqttAccess, tls: ssl.SSLContext | None) -> None:
        super().__init__(context)
        self._tasks: asyncio.TaskGroup | None = None
        self._over = asyncio.Event()
        events = ChannelEvents(self.gate.take, self.gate.miss, self._welcomed, lambda: self.main_loop.set(Flag.ERROR))
        self.channel = AudioChannel(
            context.profile, context.journal, self.loop_lag, context.network, events, self._spawn
        )
        self.application = Application(context, self)
        self.tool_runner = ToolRunner(context, self)
        inbox = MessageDispatcher(context, self)
        self.mqtt = MqttClient(access, context, self.machine, self.main_loop, inbox.receive, tls)
        self.mqtt.on_connected = lambda: self.screen.dismiss(self.machine.state)
        self.channel.mqtt = self.mqtt

    async def run(self) -> None:
        """Run until a restart is ordered."""
        self.application.boot()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                running = [
                    tasks.create_task(part.run(), name=f"sim-{type(part).__name__.lower()}")
                    for part in (
                        self.mqtt,
                        self.main_loop,
                        self.microphone,
                        self.playback,
                        self.loop_lag,
                        self.application.notifier,
                    )
                ]
                running.append(tasks.create_task(self._tick(), name="sim-tick"))
                await self._over.wait()
                for task in running:
                    task.cancel()
                await self.channel.close(say_goodbye=False)
        finally:
            self._tasks = None
            await self.channel.close(say_goodbye=False)

    async def restart(self) -> None:
        """Say goodbye, and restart; does not return, as nothing else is done any more."""
        await self.application.hang_up(say_goodbye=True)
        await asyncio.sleep(self._context.profile.timing.reboot)
        self._context.journal.note("restart")
        self._over.set()
        await asyncio.Event().wait()

    def crash(self) -> None:
        """Restart without a goodbye."""
        self._context.journal.note("crash")
        self.mqtt.cut()
        self._over.set()

    def _welcomed(self, hello: ServerHello) -> None:
        self.playback.set_rate(self._context.profile.fixed_rate or hello.sample_rate)
        self.gate.frame_ms = hello.frame_ms
        self._context.signal.notify()

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        if self._tasks is None:
            work.close()
            return
        self._tasks.create_task(work, name=name)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self.main_loop.set(Flag.TICK)

"""What a check works with: devices of its profile, the scripted models, and the setup of the server."""

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from fleet.workbench.conformance.provision import NO_IMAGES, Binding, Images
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import Round, Scene, named
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.conformance.verdict import Failed, NotApplicable
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.microphone import silence
from fleet.workbench.sim.scripted.received import ReceivedMessage

DISCOVERY_SECONDS = 12.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What the operator of the suite says about the server.

    `binding` is a server of the same kind that serves bound devices only, `images` the firmware that it has,
    `idle_seconds` is after how much silence it says goodbye, `refused` the MAC of a device that it turns away.
    """

    ota_url: str
    steering: Steering | None = None
    idle_seconds: float | None = None
    refused: str = ""
    tls: ssl.SSLContext | None = None
    binding: Binding | None = None
    images: Images = NO_IMAGES


@dataclass(slots=True)
class CheckContext:
    """The context of one check on one profile."""

    setup: Setup
    profile: Profile
    findings: list[str] = field(default_factory=list)
    """Breaches that its devices found beside what the check is about."""
    tolerated: set[str] = field(default_factory=set)
    """Rules that the check breaks on purpose."""

    @property
    def steering(self) -> Steering:
        """The scripted models.

        Raises:
            NotApplicable: The server does not use them.
        """
        if self.setup.steering is None:
            raise NotApplicable("needs the scripted models")
        return self.setup.steering

    @asynccontextmanager
    async def scripted_device(
        self, *, connect: bool = True, mac: str = "", **changes: Any
    ) -> AsyncIterator[ScriptedDevice]:
        """Run a scripted device, booted and connected unless `connect` is off.

        Args:
            connect: Whether to boot and to connect to MQTT.
            mac: Canonical; a new one without it.
            changes: What differs from the profile.
        """
        device = ScriptedDevice(
            replace(self.profile, **changes), mac or fresh_mac(), self.setup.ota_url, self.setup.tls
        )
        async with device.running():
            if connect and (code := await device.connect()):
                raise Failed(f"the broker refused the connection with code {code}")
            yield device
        found = (*device.findings, *device.tools.findings)
        self.findings += [f"{rule}: {detail}" for rule, detail in found if rule not in self.tolerated]

    @asynccontextmanager
    async def simulated_device(self, *, faults: Faults | None = None, **changes: Any) -> AsyncIterator[SimDevice]:
        """Run a simulated device; a breach that its audit found fails the check."""
        profile = replace(self.profile, **changes)
        device = SimDevice(profile, ota_url=self.setup.ota_url, mac=fresh_mac(), tls=self.setup.tls, faults=faults)
        async with device.running():
            yield device
        self.findings += [
            f"{one.rule}: {one.detail}" for one in device.report.violations if one.rule not in self.tolerated
        ]

    @contextmanager
    def scene(self, *, rounds: Iterable[Round] = (), **script: Any) -> Iterator[Scene]:
        """Run a scene of the scripted models under a mark of its own; `script` are the other fields of `Scene`.

        `{mark}` in a text stands for the mark; a round's text without it gets it in front, so that no server takes the
        sentence of another scene for this one's. Where no transcript is given, it is `scene N: hello`.
        """
        steering = self.steering
        mark = steering.free_mark()
        words = {"transcript": "hello", **script}
        words["transcript"] = str(words["transcript"]).replace("{mark}", str(mark))
        marked = tuple(replace(one, text=named(mark, one.text.replace("{mark}", str(mark)))) for one in rounds)
        scene = Scene(mark=mark, rounds=marked, **words)
        steering.add(scene)
        try:
            yield scene
        finally:
            steering.release(mark)

    @contextmanager
    def monologue(self, seconds: float) -> Iterator[Scene]:
        """Run a scene whose answer lasts so long, in sentences of about two seconds."""
        sentences = max(2, round(seconds / 2))
        text = " ".join(f"Scene {{mark}} goes on with sentence {number}." for number in range(1, sentences + 1))
        with self.scene(rounds=(Round(text),), reply_seconds=seconds) as scene:
            yield scene


async def say(device: ScriptedDevice, scene: Scene, seconds: float = 1.2, *, after: float = 1.0) -> float:
    """Let a device whose microphone is on say a scene, then be silent; return when the speech ended.

    Args:
        device: The device.
        scene: What it says.
        seconds: How long the speech is.
        after: Seconds of silence that are sent after it before this returns; the microphone stays on.
    """
    device.microphone.say(voice.say(scene.mark, seconds))
    await device.microphone.said()
    ended = device.clock()
    device.microphone.say(silence(after))
    return ended


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one utterance: the messages that frame the answer."""

    heard: ReceivedMessage | None
    start: ReceivedMessage
    stop: ReceivedMessage
    sentences: list[ReceivedMessage]

    @property
    def text(self) -> str:
        return " ".join(str(one["text"]) for one in self.sentences)


async def answered(device: ScriptedDevice, since: float, seconds: float = 15.0) -> Answer:
    """Return the answer that begins later than `since`, once its `tts stop` has come.

    Raises:
        Failed: It does not begin, or does not end.
    """
    start = await device.messages.expect("tts", "start", seconds=seconds, after=since)
    stop = await device.messages.expect("tts", "stop", seconds=seconds, after=start.at)
    heard = device.messages.find("stt", after=since)
    sentences = [one for one in device.messages.find("tts", "sentence_start", after=since) if one.at <= stop.at]
    return Answer(heard[0] if heard else None, start, stop, sentences)


async def utter(device: ScriptedDevice, scene: Scene) -> float:
    """Say a scene in the profile's mode and return when that began; the device must have said hello.

    In manual mode the button is pressed for it, else the microphone is switched on where it is off.
    """
    since = device.clock()
    manual = device.profile.mode == "manual"
    if manual or not device.microphone.on:
        device.listen()
    if manual:
        await asyncio.sleep(0.2)
    await say(device, scene, after=0.1 if manual else 1.0)
    if manual:
        device.release()
    return since


async def turn(device: ScriptedDevice, scene: Scene, seconds: float = 15.0) -> Answer:
    """Say a scene as `utter` does and return the answer."""
    return await answered(device, await utter(device, scene), seconds)


async def speaking(device: ScriptedDevice, scene: Scene, packets: int = 10) -> ReceivedMessage:
    """Say a scene as `utter` does and return the answer's `tts start`, once so many packets of it have come.

    Raises:
        Failed: No answer begins.
    """
    start = await device.messages.expect("tts", "start", seconds=15.0, after=await utter(device, scene))
    if len(await device.audio.expect(packets, seconds=5.0, after=start.at)) < packets:
        raise Failed("an answer without audio")
    return start


async def discovered(device: ScriptedDevice, since: float = 0.0) -> None:
    """Wait until the server has read the device's tool list to its end.

    Raises:
        Failed: It does not ask for it.
    """
    if not await device.tools.until("tools/list", DISCOVERY_SECONDS, after=since):
        raise Failed(f"no tools/list within {DISCOVERY_SECONDS:g} s of the connection")
    # What the server does with the last page is not visible; one round trip later it has done it.
    await asyncio.sleep(0.5)


def fresh_mac() -> str:
    """Return a new, locally administered MAC."""
    return "02:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(5))

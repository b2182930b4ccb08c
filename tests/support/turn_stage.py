"""A real edge and a real worker on a real Redis and a real broker, in one event loop, and a device that talks to them.

Recognition, the voice and the chat model are scripted behind their ports; everything between them is the product's.
"""

import asyncio
import math
import secrets
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.net.mqtt.url import parse_mqtt_url
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.edges import EdgeRecord
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.opus import Encoder
from fleet.adapters.speech.turn_silence import SilenceTurnDetector
from fleet.adapters.speech.vad_silero import Samples, VadState
from fleet.adapters.speech.voice import Voice
from fleet.adapters.tools.load import open_tools
from fleet.core.agent_settings import OneModel
from fleet.core.ports import USUAL_VOICE, CallsAsked, TextDelta, ToolCall, Transcript, VoiceOptions
from fleet.ground.settings import Settings, load
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.edge.announcer import Announcer
from fleet.roles.edge.app import Edge
from fleet.roles.worker.app import Worker
from fleet.roles.worker.calls.device_calls import DeviceCalls
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.settings import WorkerSettings
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.scene import HELLO, VOLUME
from tests.integration.worker.scripted import Device, ScriptedLlm
from tests.support.known_device import note_device
from tests.support.mosquitto_server import MosquittoServer
from tests.support.ports import LOOPBACK
from tests.support.whole_worker import until_whole

LIMIT = 240
RATE, FRAME_MS = 16_000, 60
SPOKEN = 1.02
"""Seconds of an utterance."""
LOUD = 0.05
"""Mean amplitude from which a window counts as speech."""


class LoudnessVad:
    """Takes what is loud for speech."""

    def probabilities(self, windows: Sequence[tuple[VadState, Samples]]) -> list[float]:
        return [0.95 if abs(samples).mean() > LOUD else 0.02 for _, samples in windows]


class OneText:
    """Understands the same words whatever is said."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        self.asked.set()
        return Transcript("Make it louder, please.", "en")

    async def aclose(self) -> None:
        """Nothing is open."""


class OneTone:
    """Speaks every sentence as half a second of a tone."""

    sample_rate = 24_000

    async def speak(self, text: str, language: str, voice: VoiceOptions = USUAL_VOICE) -> AsyncGenerator[bytes, None]:
        yield tone(0.5, self.sample_rate)

    async def aclose(self) -> None:
        """Nothing is open."""


class AudioSide(asyncio.DatagramProtocol):
    """The UDP side of a device."""

    def __init__(self, port: int, udp: dict[str, Any]) -> None:
        self._key, self._ssrc = bytes.fromhex(udp["key"]), bytes.fromhex(udp["nonce"])[4:8]
        self._to = (LOOPBACK, port)
        self._sequence = 0
        self._transport: asyncio.DatagramTransport | None = None
        self._came = asyncio.Event()
        self.received = 0

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=(LOOPBACK, 0))

    def close(self) -> None:
        if self._transport:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.received += 1
        self._came.set()

    def send(self, packets: Sequence[bytes]) -> None:
        assert self._transport
        for packet in packets:
            self._sequence += 1
            header = struct.pack(">BBH4sII", 1, 0, len(packet), self._ssrc, 0, self._sequence)
            cipher = Cipher(algorithms.AES(self._key), modes.CTR(header)).encryptor()
            self._transport.sendto(header + cipher.update(packet), self._to)

    async def hear(self) -> None:
        """Wait for the next packet."""
        self._came.clear()
        async with asyncio.timeout(LIMIT):
            await self._came.wait()


class TurnStage:
    """Everything, and a device that has opened a session and listens."""

    def __init__(
        self, device: Device, audio: AudioSide, llm: ScriptedLlm, asr: OneText, session: str, calls: DeviceCalls
    ) -> None:
        self.device = device
        self._calls = calls
        self._completed = asyncio.Event()
        self.audio = audio
        self.llm = llm
        self.asr = asr
        self.session = session

    async def ask(self) -> dict[str, Any]:
        """Say something; return the tool call that the device is sent."""
        self.llm.script = [
            [CallsAsked((ToolCall("c1", "audio_speaker_set_volume", '{"volume": 70}'),))],
            # The turn does not wait for the end of such a call, so the model does.
            [self._completed, TextDelta("It is louder "), TextDelta("now. ")],
        ]
        packets, pause = utterance(), round((SPOKEN + 0.3) * 1000) // FRAME_MS
        self.audio.send(packets[:pause])
        async with asyncio.timeout(LIMIT):
            await self.asr.asked.wait()
        self.audio.send(packets[pause:])
        return await self.device.hear_request("tools/call")

    async def answer(self, call: dict[str, Any]) -> None:
        """Answer the tool call; return when the first packet of the spoken answer has come."""
        await self.device.answer(call, result={"content": [{"type": "text", "text": "true"}], "isError": False})
        await _until(lambda: not any(self.device.mac in devices for devices in self._calls.awaited))
        self._completed.set()
        await self.audio.hear()


def tone(seconds: float, rate: int = RATE) -> bytes:
    count = round(seconds * rate)
    return struct.pack(f"<{count}h", *(round(12_000 * math.sin(0.1 * number)) for number in range(count)))


def utterance() -> list[bytes]:
    """Return the packets of a second of a tone, and of the silence that ends it."""
    encoder = Encoder(RATE, FRAME_MS, 24_000, 5)
    pcm = tone(SPOKEN) + bytes(2 * RATE * 1020 // 1000)
    size = 2 * RATE * FRAME_MS // 1000
    return [encoder.encode(pcm[at : at + size]) for at in range(0, len(pcm), size)]


@asynccontextmanager
async def turn_stage(redis_url: str, broker: MosquittoServer, keys: CredentialKeys) -> AsyncIterator[TurnStage]:
    """Run edge and worker; let a device connect, give its tools, open a session and its microphone."""
    settings = load(shards=2, udp_host=LOOPBACK, udp_port=0, udp_native=False, lease_seconds=LIMIT)
    mac = "02:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(5))
    async with AsyncExitStack() as stack:
        store, llm, asr = await Store.open(redis_url, 2), ScriptedLlm(), OneText()
        stack.push_async_callback(store.close)
        tools = await stack.enter_async_context(open_tools(settings))
        resources = WorkerResources.of(slice_of(settings, WorkerSettings), keys, OneModel(llm), store, tools)
        edge = await stack.enter_async_context(_edge(settings, asr, store, broker, keys))
        announcer = Announcer(resources.edges, lambda: EdgeRecord("edge-t", LOOPBACK, edge.port, 0))
        await stack.enter_async_context(running("edge announcer", announcer.run))
        await announcer.announced.wait()
        worker = Worker(resources, secrets.token_hex(4), parse_mqtt_url(broker.url))
        await stack.enter_async_context(running("worker", worker.run))
        await until_whole(worker, settings.shards)
        await note_device(store, mac, {"kid": "k1"}, "xiaozhi")
        device = await Device.connect(broker, keys, mac)
        stack.push_async_callback(device.close)
        await _give_tools(device)
        async with asyncio.timeout(LIMIT):
            while not await resources.tools.read(mac):
                await asyncio.sleep(0.01)
        await device.say(HELLO)
        welcome = await device.hear_type("hello")
        audio = AudioSide(edge.port, welcome["udp"])
        await audio.open()
        stack.callback(audio.close)
        session = str(welcome["session_id"])
        await device.say({"session_id": session, "type": "listen", "state": "start", "mode": "auto"})
        await _until(lambda: any(one.parts.turn_taking.uplink.gate == "open" for one in edge._registry))
        yield TurnStage(device, audio, llm, asr, session, worker._dispatcher._calls)


@asynccontextmanager
async def _edge(
    settings: Settings, asr: OneText, store: Store, broker: MosquittoServer, keys: CredentialKeys
) -> AsyncIterator[Edge]:
    name = secrets.token_hex(4)
    publisher = Publisher(parse_mqtt_url(broker.url), keys.issue("service", f"fleet-edge-{name}"))
    voice, inboxes = Voice(OneTone()), Inboxes(store)
    edge = Edge(
        settings=settings,
        edge_id="edge-t",
        audio_input=AudioInput(LoudnessVad()),  # type: ignore[arg-type] # a scripted model
        asr=asr,
        turn_detector=SilenceTurnDetector(),
        voice=voice,
        publisher=publisher,
        inboxes=inboxes,
    )
    edge.bind()
    async with running("edge publisher", publisher.run), running("edge", edge.run):
        yield edge
    voice.close()


async def _until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT):
        while not happened():
            await asyncio.sleep(0.01)


async def _give_tools(device: Device) -> None:
    initialize = await device.hear_request("initialize")
    await device.answer(initialize, result={"serverInfo": {"name": "board", "version": "2.4.2"}})
    await device.hear_request("notifications/initialized")
    request = await device.hear_request("tools/list")
    await device.answer(request, result={"tools": [VOLUME]})

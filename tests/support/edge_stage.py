"""An edge with a scripted ear, recogniser and voice, and a device that talks to it over real UDP."""

import asyncio
import json
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.speech.audio_input import VadFrame
from fleet.adapters.speech.echo_stream import EchoPool
from fleet.adapters.speech.voice import Speaker
from fleet.core.ports import Asr, Transcript
from fleet.core.reference import Played
from fleet.ground.settings import Settings
from fleet.ground.settings.slices import slice_of
from fleet.roles.edge.agents import AgentSpeech
from fleet.roles.edge.app import Edge
from fleet.roles.edge.settings import EdgeSettings
from fleet.wire import edge_messages
from fleet.wire.messages import AudioFormat

MAC = "aa:bb:cc:dd:ee:01"
KEY = bytes(range(16))
LIMIT = 240
"""Seconds that any wait of a test may take."""
SOON = 100
"""After so many looks at what a test waits for, these come less often: each takes 50 us of a core."""
SPEECH, QUIET = 0.9, 0.05
_SETTINGS = {"udp_host": "127.0.0.1", "udp_port": 0, "endpoint_ms": 200, "pause_ms": 240}
"""Silence alone ends utterances."""
PROOF = 4
"""Packets in a row that prove where a device is."""


_ROOM = b"\xff\xff"
"""The last sample of a silent frame."""


class ScriptedEar:
    """Hears what `opus_like` wrote into a packet: one sample value a frame, and a probability."""

    def __init__(self, uplink: AudioFormat, listener: Any, audio_input: "ScriptedAudioInput") -> None:
        self._frame_ms, self._listener, self._audio_input = uplink.frame_ms, listener, audio_input
        self.waiting = 0

    def feed(self, packet: bytes, played: Played | None = None) -> bool:
        self._audio_input.seen.append(packet)
        self._audio_input.played.append(played)
        speech = packet[1] / 255 if len(packet) > 3 else 0.0
        sample = packet[2:4] if len(packet) > 3 else b"\0\0"
        # Only a lost packet is nothing but zeros.
        last = _ROOM if packet[2:4] == b"\0\0" else sample
        frame = VadFrame(sample * (16 * self._frame_ms - 1) + last, speech)
        self.waiting += 1
        asyncio.get_running_loop().call_soon(self._hear, frame)
        return True

    def _hear(self, frame: VadFrame) -> None:
        if self._audio_input.late:
            self._audio_input.unheard.append(lambda: self._hear(frame))
        elif self._listener:
            self.waiting -= 1
            self._listener.on_frame(frame)

    def close(self) -> None:
        self._listener = None


class ScriptedAudioInput:
    def __init__(self) -> None:
        self.seen: list[bytes] = []
        """Every packet that was fed."""
        self.played: list[Played | None] = []
        """With each: what the device had played."""
        self.echo: EchoPool | None = None
        self.late = False
        """Whether what is fed waits until they catch up, as on a machine that is too busy."""
        self.unheard: list[Callable[[], None]] = []

    def open(self, uplink: AudioFormat, listener: Any, *, echoes: bool = False) -> ScriptedEar:
        return ScriptedEar(uplink, listener, self)

    def catch_up(self) -> None:
        """Hear what waits, in its order."""
        self.late, waiting = False, self.unheard
        self.unheard = []
        for hear in waiting:
            hear()

    async def run(self) -> None:
        await asyncio.Event().wait()


@dataclass
class ScriptedAsr:
    """Answers with the next text or failure of its script; then with "hello"."""

    script: deque[str | Exception | Awaitable[str]] = field(default_factory=deque)
    heard: list[bytes] = field(default_factory=list)
    language: str = "en"
    languages: list[str] = field(default_factory=list)
    """Asked for; empty for what the settings say."""
    expected: list[str] = field(default_factory=list)

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        self.heard.append(pcm)
        self.languages.append(language)
        self.expected.append(expected)
        answer = self.script.popleft() if self.script else "hello"
        if isinstance(answer, Exception):
            raise answer
        return Transcript(answer if isinstance(answer, str) else await answer, self.language)

    def markers(self, utterance: int = -1) -> list[int]:
        """Return the sample values of an utterance's frames, in order, without repetitions."""
        heard = struct.unpack(f"<{len(self.heard[utterance]) // 2}h", self.heard[utterance])
        samples = [value for value in heard if value != -1]
        return [value for at, value in enumerate(samples) if at == 0 or samples[at - 1] != value]


@dataclass
class ScriptedTurnDetector:
    """Finds everybody as finished as it is told."""

    probability: float = 0.99
    judged: int = 0

    async def finished(self, pcm: bytes) -> float:
        self.judged += 1
        return self.probability


@dataclass
class ScriptedVoice:
    """Speaks each sentence as `packets_each` packets that name it."""

    packets_each: int = 3
    failure: Exception | None = None
    fail_at: int = 1
    """Packets of a sentence before the failure."""
    gate: asyncio.Event | None = None
    spoken: list[str] = field(default_factory=list)

    speakers: list[Speaker | None] = field(default_factory=list)
    """Who spoke each of them; None for the usual voice."""

    async def packets(
        self, text: str, language: str, downlink: AudioFormat, speaker: Speaker | None = None
    ) -> AsyncIterator[list[bytes]]:
        self.spoken.append(text)
        self.speakers.append(speaker)
        for number in range(self.packets_each):
            if self.failure and number == self.fail_at:
                raise self.failure
            if self.gate:
                await self.gate.wait()
            yield [b"\x58" + f"{text}:{number:06}".encode()]


def opus_like(marker: int, speech: float = SPEECH, frame_ms: int = 60) -> bytes:
    """Return a payload whose first byte is right for Opus and whose rest the scripted ear understands."""
    first = {20: 0x48, 60: 0x58}[frame_ms]
    return bytes((first, round(speech * 255))) + marker.to_bytes(2, "little") + bytes(8)


class Device(asyncio.DatagramProtocol):
    """A device's UDP side."""

    def __init__(self, ssrc: int, port: int) -> None:
        self.ssrc, self.sequence = ssrc, 0
        self._to = ("127.0.0.1", port)
        self.received: list[bytes] = []
        self._arrived = asyncio.Event()
        self._transport: asyncio.DatagramTransport | None = None

    async def open(self) -> None:
        """Take a new source port."""
        self.close()
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))

    def close(self) -> None:
        if self._transport:
            self._transport.close()
            self._transport = None

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.received.append(data)
        self._arrived.set()

    def seal(self, payload: bytes, sequence: int | None = None, timestamp: int = 0, flags: int = 0) -> bytes:
        if sequence is None:
            self.sequence += 1
            sequence = self.sequence
        header = struct.pack(">BBHIII", 1, flags, len(payload), self.ssrc, timestamp, sequence)
        return header + crypt(header, payload)

    def send(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.send_raw(self.seal(payload))

    def send_raw(self, datagram: bytes) -> None:
        assert self._transport
        self._transport.sendto(datagram, self._to)

    def say(self, frames: int = 6, first: int = 1, silence: int = 5) -> None:
        """Speak, then be silent for longer than the endpoint."""
        self.send(*(opus_like(first + number) for number in range(frames)))
        self.be_silent(silence)

    def be_silent(self, frames: int = 5) -> None:
        self.send(*(opus_like(0, QUIET) for _ in range(frames)))

    def audio(self) -> list[bytes]:
        """Return the decrypted packets, filling silence left out."""
        payloads = [crypt(datagram[:16], datagram[16:]) for datagram in self.received]
        return [payload for payload in payloads if b":" in payload]

    async def packets(self, count: int) -> list[bytes]:
        """Wait until that many packets came that are no silence."""
        async with asyncio.timeout(LIMIT):
            while len(self.audio()) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.audio()


def crypt(header: bytes, payload: bytes) -> bytes:
    return Cipher(algorithms.AES(KEY), modes.CTR(header)).encryptor().update(payload)


class Stage:
    """The edge and all that is around it."""

    def __init__(
        self,
        documents: KnownAgents | None = None,
        speech: AgentSpeech | None = None,
        asr: Asr | None = None,
        **settings: Any,
    ) -> None:
        self.asr, self.voice, self.audio_input = ScriptedAsr(), ScriptedVoice(), ScriptedAudioInput()
        self.turn_detector = ScriptedTurnDetector()
        self.orders: list[dict[str, Any]] = []
        self.posted: list[edge_messages.EdgeEvent] = []
        self.refused: list[edge_messages.EdgeEvent] = []
        self.post_failure: Exception | None = None
        self.offline = False
        """Whether the broker is away: orders are lost."""
        self.changed = asyncio.Condition()
        self._inbox: asyncio.Queue[edge_messages.EdgeCommand] = asyncio.Queue()
        self.edge = Edge(
            settings=slice_of(Settings(**{**_SETTINGS, **settings}), EdgeSettings),
            edge_id="e1",
            audio_input=self.audio_input,
            asr=asr or self.asr,
            turn_detector=self.turn_detector,
            voice=self.voice,
            publisher=self,
            inboxes=self,
            documents=documents,
            speech=speech,
        )
        self.edge.bind()
        self.devices: list[Device] = []

    async def read_edge(self, edge: str) -> AsyncIterator[edge_messages.EdgeCommand]:
        assert edge == "e1"
        while True:
            yield await self._inbox.get()
            self._inbox.task_done()

    def publish(self, topic: str, payload: bytes) -> bool:
        assert topic == f"fleet/down/{MAC}"
        if not self.offline:
            self.orders.append(json.loads(payload))
        return not self.offline

    async def to_shard(self, shard: int, event: edge_messages.EdgeEvent) -> None:
        if self.post_failure:
            self.refused.append(event)
            raise self.post_failure
        assert shard == 3
        self.posted.append(event)

    async def send(self, kind: str, session: str = "s1", **rest: Any) -> None:
        """Put a message into the edge's inbox; return when the edge has read it."""
        document = {"kind": kind, "device": MAC, "session": session, **rest}
        self._inbox.put_nowait(msgspec.convert(document, edge_messages.EdgeCommand))
        await self.until(lambda: self._inbox.empty())
        await settle()

    async def open(self, ssrc: int = 0x11223344, session: str = "s1", **rest: Any) -> Device:
        """Open a session and a device's socket."""
        device = await self.device(ssrc)
        await self.send("session_opened", session, **{**opened(ssrc), **rest})
        return device

    async def device(self, ssrc: int = 0x11223344) -> Device:
        device = Device(ssrc, self.edge.port)
        await device.open()
        self.devices.append(device)
        return device

    async def listen(self, mode: str = "auto") -> None:
        await self.send("listening_started", mode=mode)

    async def speak(self, turn: str, *sentences: str, ended: bool = True) -> None:
        """Answer as a shard does."""
        await self.send("speech_begun", turn=turn)
        for index, text in enumerate(sentences):
            await self.send("sentence_ready", turn=turn, index=index, text=text, language="en")
        if ended:
            await self.send("speech_ended", turn=turn, index=len(sentences))

    def told(self) -> list[str]:
        """Return the orders in short."""
        return [order.get("state", order["type"]) for order in self.orders]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.posted]

    def utterances(self) -> list[edge_messages.UtteranceEvent]:
        return [event for event in self.posted if isinstance(event, edge_messages.UtteranceEvent)]

    def pass_time(self, seconds: float) -> None:
        """Let the edge look after its limits as if so much time had passed."""
        now = asyncio.get_running_loop().time()
        for session in self.edge._registry:
            session.check(now + seconds)

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait for something that other tasks do; look more seldom once it takes long."""
        async with asyncio.timeout(LIMIT):
            looks = 0
            while not happened():
                looks += 1
                await asyncio.sleep(0.002 if looks < SOON else 0.02)

    async def received(self, count: int) -> None:
        """Wait until the edge has taken so many packets since its start, and let it work on them."""
        await self.until(lambda: self.edge.counters["received"] >= count)
        await settle()

    async def hears(self, device: Device) -> None:
        """Send quiet frames until they are heard, as a microphone that has been opened does."""
        async with asyncio.timeout(LIMIT):
            while not self.audio_input.seen:
                device.be_silent(PROOF)
                await asyncio.sleep(0.02)

    async def follows(self, device: Device) -> None:
        """Send quiet frames from a device's new port, as its microphone does, until the session is there."""
        (session,) = self.edge._registry
        before = session.parts.stream.address
        async with asyncio.timeout(LIMIT):
            while session.parts.stream.address == before:
                device.be_silent(1)
                await asyncio.sleep(0.02)

    async def told_at_least(self, *orders: str) -> None:
        """Wait until the device was told these, in this order."""
        await self.until(lambda: is_inside(iter(self.told()), orders))

    async def heard(self, count: int = 1) -> edge_messages.UtteranceEvent:
        """Wait for the n-th utterance."""
        await self.until(lambda: len(self.utterances()) >= count)
        return self.utterances()[count - 1]


def is_inside(whole: Iterator[str], parts: tuple[str, ...]) -> bool:
    return all(part in whole for part in parts)


def opened(ssrc: int) -> dict[str, Any]:
    return {
        "dialect": "xiaozhi",
        "shard": 3,
        "ssrc": ssrc,
        "key": KEY.hex(),
        "uplink_rate": 16000,
        "uplink_frame_ms": 60,
        "downlink_rate": 24000,
        "downlink_frame_ms": 60,
    }


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def on_stage(**settings: Any) -> AsyncIterator[Stage]:
    """Run an edge for one test."""
    stage = Stage(**settings)
    running = asyncio.get_running_loop().create_task(stage.edge.run())
    try:
        await settle()
        yield stage
    finally:
        for device in stage.devices:
            device.close()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled(), running.exception()

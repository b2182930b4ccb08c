"""MQTT clients that load a broker and count what comes out of it."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import cast

from fleet.ground.errors import Unavailable
from fleet.wire.identity import CredentialKeys
from fleet.wire.mqtt import packets as mqtt
from fleet.wire.mqtt.framing import Kind, Packet, Splitter
from fleet.wire.topics import down_topic, up_topic
from fleet.workbench.bench import streams

_PATIENCE_SECONDS = 60.0
_AT_ONCE = 20
"""Connections that are being made at the same time."""
_WINDOW = 40
"""Messages on their way at the same time: a busy broker finds several at each turn of its loop."""
_PAYLOAD = b"x" * 200


class Tally:
    """Counts messages, whoever gets them."""

    def __init__(self) -> None:
        self._count = self._goal = 0
        self._reached = asyncio.Event()

    def add(self) -> None:
        self._count += 1
        if self._count >= self._goal:
            self._reached.set()

    def expect(self, more: int) -> None:
        """Wait for so many more than there are now; `reach` does the waiting."""
        self._goal = self._count + more
        self._reached.clear()

    async def reach(self) -> None:
        """Return when they have come.

        Raises:
            Unavailable: They did not come.
        """
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._reached.wait()
        except TimeoutError as error:
            raise Unavailable(f"the broker kept {self._goal - self._count} messages to itself") from error


class Client(asyncio.Protocol):
    """One connection; counts each message in its tally and acknowledges it."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._splitter = Splitter()
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of uvloop are of no asyncio class.
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()
        if self._answer and not self._answer.done():
            self._answer.set_exception(Unavailable("the broker closed a connection"))

    def data_received(self, data: bytes) -> None:
        for packet in self._splitter.feed(data):
            if packet.kind == Kind.PUBLISH:
                self._take(packet)
            elif self._answer and not self._answer.done():
                self._answer.set_result(packet.raw)

    def send(self, data: bytes) -> None:
        if self._transport:
            self._transport.write(data)

    async def ask(self, request: bytes) -> None:
        """Send a packet and wait for its answer.

        Raises:
            Unavailable: The broker refused it, closed the connection, or did not answer.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self.send(request)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                answer = await self._answer
        except TimeoutError as error:
            raise Unavailable("the broker does not answer") from error
        # The last byte of CONNACK and SUBACK is the code.
        if answer[-1] >= mqtt.SUBSCRIBE_DENIED or (answer[0] >> 4 == Kind.CONNACK and answer[-1]):
            raise Unavailable(f"the broker refused with code {answer[-1]}")

    def _take(self, packet: Packet) -> None:
        self._tally.add()
        if packet.flags & 0x06:
            found = mqtt.parse_publish(packet)
            if found:
                self.send(mqtt.pubacks([found.packet_id]))


class Load:
    """A worker's session and many devices at one broker.

    Args:
        port: Where the broker listens.
        keys: Let the clients in.
        subscribing: Whether devices subscribe to their topic, as they must without the plugin.
    """

    def __init__(self, port: int, keys: CredentialKeys, *, subscribing: bool) -> None:
        self._port = port
        self._keys = keys
        self._subscribing = subscribing
        self._random = random.Random(0)
        self._devices: list[Client] = []
        self._worker = Client(Tally())
        self._down = Tally()
        self.up = Tally()
        """Messages of devices, and presence, at the worker."""

    async def start(self) -> None:
        """Connect the worker."""
        credentials = self._keys.issue("service", "fleet-bench")
        self._worker = await self._open(self.up, credentials.client_id, credentials.username, credentials.password)
        for topic in ("fleet/up/#", "fleet/presence/#"):
            await self._worker.ask(mqtt.subscribe([topic]))

    async def connect(self, count: int) -> None:
        """Connect so many devices."""
        for first in range(0, count, _AT_ONCE):
            async with asyncio.TaskGroup() as group:
                made = [
                    group.create_task(self._device(number), name=f"device {number}")
                    for number in range(first, min(first + _AT_ONCE, count))
                ]
            self._devices += [one.result() for one in made]

    async def deliver(self, messages: int) -> None:
        """Publish to devices at random, at QoS 0, and wait until they have it."""
        await self._stream(messages, self._down, self._to_device)

    async def report(self, messages: int) -> None:
        """Let devices at random publish at QoS 0, and wait until the worker has it."""
        await self._stream(messages, self.up, self._to_worker)

    async def leave(self) -> None:
        """Let all devices disconnect, and wait until the broker has closed."""
        for device in self._devices:
            device.send(mqtt.DISCONNECT)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                for device in self._devices:
                    await device.ended.wait()
        except TimeoutError as error:
            raise Unavailable("the broker does not close connections") from error
        self._devices.clear()

    async def stop(self) -> None:
        self._worker.send(mqtt.DISCONNECT)
        await self._worker.ended.wait()

    async def _stream(self, messages: int, tally: Tally, send: Callable[[Sequence[int]], None]) -> None:
        for first in range(0, messages, _WINDOW):
            numbers = self._random.choices(range(len(self._devices)), k=min(_WINDOW, messages - first))
            tally.expect(len(numbers))
            send(numbers)
            await tally.reach()

    def _to_device(self, numbers: Sequence[int]) -> None:
        self._worker.send(b"".join(mqtt.publish(down_topic(streams.device(number)), _PAYLOAD) for number in numbers))

    def _to_worker(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._devices[number].send(mqtt.publish(up_topic(streams.device(number)), _PAYLOAD))

    async def _device(self, number: int) -> Client:
        credentials = self._keys.issue("device", streams.device(number))
        found = await self._open(self._down, credentials.client_id, credentials.username, credentials.password)
        if self._subscribing:
            await found.ask(mqtt.subscribe([down_topic(credentials.client_id)], qos=0))
        return found

    async def _open(self, tally: Tally, client_id: str, username: str, password: str) -> Client:
        loop = asyncio.get_running_loop()
        try:
            _, client = await loop.create_connection(lambda: Client(tally), streams.HOST, self._port)
        except OSError as error:
            raise Unavailable(f"cannot connect to the broker: {error.strerror}") from error
        await client.ask(mqtt.connect(mqtt.Connect(client_id, username, password, keepalive=240)))
        return client

"""Those who ask: clients of the gateway, and one without anything between it and the model."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import websockets

from fleet.ground.errors import Unavailable
from fleet.workbench.bench.turn_model import TurnModel, Written, words
from fleet.workbench.local_servers.ports import LOOPBACK

_TURN_SECONDS = 60.0
_OPEN_SECONDS = 60.0


@dataclass(slots=True)
class Heard:
    """When an answer's first sentence and its end were heard, on `time.perf_counter`."""

    first: float
    last: float


@dataclass(slots=True)
class Delays:
    """What was added to the turns of one window, in milliseconds."""

    first: list[float] = field(default_factory=list)
    """From the model's first token to the first sentence."""
    last: list[float] = field(default_factory=list)
    """From its last to the end of the answer."""
    lost: int = 0

    def add(self, written: Written, heard: Heard) -> None:
        """Note one turn."""
        self.first.append((heard.first - written.first) * 1e3)
        self.last.append((heard.last - written.last) * 1e3)


class Talker(Protocol):
    """A client that asks."""

    async def ask(self, number: int) -> Heard:
        """Say something and listen to the whole answer."""


class GatewayTalker:
    """A client of the LLM Gateway API that asks for its answers sentence by sentence."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self._socket = socket

    async def configure(self) -> None:
        """Take the greeting and choose streaming."""
        await self._hear()
        await self._socket.send(json.dumps({"type": "configure", "stream": True}))

    async def ask(self, number: int) -> Heard:
        await self._socket.send(json.dumps({"type": "text_input", "text": words(number)}))
        first = 0.0
        while True:
            heard = await self._hear()
            if heard["type"] == "error":
                raise Unavailable(f"the gateway answers {heard['code']}: {heard.get('details')}")
            if heard["type"] != "llm_response":
                continue
            first = first or time.perf_counter()
            if heard["is_final"]:
                return Heard(first, time.perf_counter())

    async def _hear(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self._socket.recv())
        return message


class DirectTalker:
    """A client that asks the model itself: it measures the benchmark's own part."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, number: int) -> Heard:
        body = words(number).encode()
        self._writer.write(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await self._reader.readuntil(b"data: ")
        first = time.perf_counter()
        await self._reader.readuntil(b"[DONE]\n\n\r\n0\r\n\r\n")
        return Heard(first, time.perf_counter())


@asynccontextmanager
async def gateway_talkers(port: int, number: int) -> AsyncIterator[list[Talker]]:
    """Connect so many clients to a gateway during the block."""
    async with AsyncExitStack() as stack:
        talkers: list[Talker] = []
        for _ in range(number):
            connecting = websockets.connect(f"ws://{LOOPBACK}:{port}", compression=None, open_timeout=_OPEN_SECONDS)
            talker = GatewayTalker(await stack.enter_async_context(connecting))
            await talker.configure()
            talkers.append(talker)
        yield talkers


@asynccontextmanager
async def direct_talkers(port: int, number: int) -> AsyncIterator[list[Talker]]:
    """Connect so many to the model during the block."""
    pairs = [await asyncio.open_connection(LOOPBACK, port) for _ in range(number)]
    try:
        yield [DirectTalker(*pair) for pair in pairs]
    finally:
        for _, writer in pairs:
            writer.close()


async def talk(talkers: list[Talker], model: TurnModel, seconds: float, numbers: "count[int]") -> Delays:
    """Let everybody have one turn after the other until the time is over; those under way are ended."""
    delays, end = Delays(), time.perf_counter() + seconds

    async def go_on(talker: Talker, first: int) -> None:
        # Not all at once: users are not in step.
        await asyncio.sleep(model.seconds * first / len(talkers))
        while time.perf_counter() < end:
            number = next(numbers)
            try:
                async with asyncio.timeout(_TURN_SECONDS):
                    heard = await talker.ask(number)
            except TimeoutError:
                delays.lost += 1
                return
            delays.add(model.written.pop(number), heard)

    async with asyncio.TaskGroup() as group:
        for first, talker in enumerate(talkers):
            group.create_task(go_on(talker, first), name=f"talker {first}")
    return delays

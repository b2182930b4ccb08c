"""Devices that answer every question for their tools with as much as they may, and never come to an end."""

import asyncio
import itertools
import json
import random
from typing import Any, cast

from fleet.wire.identity import CredentialKeys
from fleet.wire.mqtt import packets
from fleet.wire.mqtt.packets import Connack, Connect, Publish
from fleet.wire.mqtt.reader import BrokerReader
from fleet.wire.topics import up_topic
from tests.support.mosquitto_server import MosquittoServer

PAGE_TOOLS = 14
_KEEPALIVE = 240


def hostile_page(number: int, tools: int = PAGE_TOOLS, size: int = 7_500) -> dict[str, Any]:
    """Return a page of tools whose schemas are as large as they may be, and no two alike."""
    text = random.Random(number).randbytes((tools * size + 1) // 2).hex()
    schemas = [
        {"type": "object", "properties": {"a": {"enum": [text[at * size : (at + 1) * size]]}}} for at in range(tools)
    ]
    return {
        "tools": [{"name": f"self.t{number}.{at}", "inputSchema": schema} for at, schema in enumerate(schemas)],
        "nextCursor": f"cursor {number + 1}",
    }


class EndlessLister(asyncio.Protocol):
    """One device.

    Args:
        mac: The device.
        most: Pages that it answers; then it is silent.
        page: Makes its page of a number.
    """

    def __init__(self, mac: str, most: int = 40, **page: int) -> None:
        self.mac = mac
        self.answered = 0
        self.joined = asyncio.Event()
        self._most = most
        self._page = page
        self._pages = itertools.count(hash(mac) % 10_000)
        self._reader = BrokerReader()
        self._transport: asyncio.Transport | None = None

    async def join(self, broker: MosquittoServer, keys: CredentialKeys) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self, broker.host, broker.port)
        self._send(packets.connect(Connect.of(keys.issue("device", self.mac), _KEEPALIVE)))
        async with asyncio.timeout(240):
            await self.joined.wait()

    def close(self) -> None:
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for packet in self._reader.feed(data):
            if isinstance(packet, Connack):
                assert packet.code == 0
                self.joined.set()
            elif isinstance(packet, Publish):
                self._hear(json.loads(packet.payload))

    def _hear(self, message: dict[str, Any]) -> None:
        request = message.get("payload", {})
        if request.get("method") == "initialize":
            self._answer(request, {"serverInfo": {"name": "board", "version": "2.4.2"}})
        elif request.get("method") == "tools/list" and self.answered < self._most:
            self.answered += 1
            self._answer(request, hostile_page(next(self._pages), **self._page))

    def _answer(self, request: dict[str, Any], result: dict[str, Any]) -> None:
        payload = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        said = json.dumps({"type": "mcp", "session_id": "", "payload": payload}).encode()
        self._send(packets.publish(up_topic(self.mac), said))

    def _send(self, packet: bytes) -> None:
        assert self._transport
        self._transport.write(packet)

"""A model whose messages are written down, and a device and an edge without audio, for tests of the worker."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from fleet.adapters.redis import keys as names
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.core.ports import USUAL, LlmEvent, LlmOptions, Message, ToolOffer
from fleet.ground.errors import ProviderError
from fleet.wire.edge_messages import EdgeCommand
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import up_topic
from tests.support.front_client import FrontClient
from tests.support.mosquitto_server import MosquittoServer

PATIENCE = 240.0


class ScriptedLlm:
    """Plays one list of events for each request; an asyncio.Event in it is awaited."""

    def __init__(self) -> None:
        self.script: list[Sequence[LlmEvent | ProviderError | asyncio.Event]] = []
        self.asked: list[tuple[tuple[Message, ...], tuple[ToolOffer, ...]]] = []
        self.options: list[LlmOptions] = []
        self.closed = asyncio.Event()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        self.asked.append((tuple(messages), tuple(tools)))
        self.options.append(options)
        try:
            for event in self.script.pop(0):
                if isinstance(event, asyncio.Event):
                    await event.wait()
                elif isinstance(event, ProviderError):
                    raise event
                else:
                    yield event
        finally:
            self.closed.set()


class Device:
    """A device's MQTT connection; never subscribes."""

    def __init__(self, client: FrontClient | None, mac: str) -> None:
        self._client = client
        self.mac = mac

    @classmethod
    async def connect(cls, broker: MosquittoServer, keys: CredentialKeys, mac: str) -> "Device":
        client = await FrontClient.open(broker.host, broker.port)
        login = keys.issue("device", mac, policy="first", generation=1)
        assert await client.connect(mac, login.username, login.password) == 0
        return cls(client, mac)

    async def say(self, message: dict[str, Any] | bytes) -> None:
        payload = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self._client, "not connected"
        await self._client.publish(up_topic(self.mac), payload)

    async def hear(self) -> dict[str, Any]:
        """Return the next message; answers `initialize` and `tools/list` never by itself."""
        assert self._client, "not connected"
        async with asyncio.timeout(PATIENCE):
            return json.loads((await self._client.message()).payload)

    async def hear_type(self, kind: str) -> dict[str, Any]:
        """Return the next message of a type; skips others."""
        while True:
            message = await self.hear()
            if message["type"] == kind:
                return message

    async def hear_request(self, method: str) -> dict[str, Any]:
        """Return the next message to the tool server, which must be of this method."""
        payload: dict[str, Any] = (await self.hear_type("mcp"))["payload"]
        assert payload["method"] == method, payload
        return payload

    async def answer(self, request: dict[str, Any], **outcome: Any) -> None:
        await self.say({"session_id": "", "type": "mcp", "payload": {"jsonrpc": "2.0", "id": request["id"], **outcome}})

    async def close(self) -> None:
        if self._client:
            await self._client.close()


class SilentEdge:
    """An edge as the worker sees it: an announcement and an inbox."""

    def __init__(self, edges: Edges, inboxes: Inboxes) -> None:
        self._edges = edges
        self._inbox = inboxes.read_edge("edge-1")

    async def announce(self, **changes: Any) -> None:
        await self._edges.announce(
            EdgeRecord(**{"id": "edge-1", "host": "h.example", "port": 8884, "load": 0} | changes)
        )
        # It is not announced again, so it must not lapse on a busy machine.
        await self._edges._store.client.expire(names.edge("edge-1"), 600)

    async def next(self, kind: type[EdgeCommand] | None = None) -> Any:
        """Return the next message, which must be of this kind where one is given."""
        async with asyncio.timeout(PATIENCE):
            message = await anext(self._inbox)
        assert kind is None or isinstance(message, kind), message
        return message

    async def until(self, kind: type[EdgeCommand]) -> Any:
        """Return the next message of this kind; skips others."""
        while not isinstance(message := await self.next(), kind):
            pass
        return message

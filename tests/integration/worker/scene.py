"""A worker on a real Mosquitto with the plugin and a real Redis; its model is scripted, its edge only an inbox."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from fleet.adapters.net.mqtt.url import parse_mqtt_url
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.core.agent_settings import OneModel
from fleet.core.ports import CallsAsked, LlmEvent, Message, TextDelta, ToolCall
from fleet.ground.settings import load
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.worker.app import Worker
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.settings import WorkerSettings
from fleet.wire import edge_messages
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.scripted import PATIENCE, Device, ScriptedLlm, SilentEdge
from tests.support.known_device import note_device
from tests.support.mosquitto_server import MosquittoServer
from tests.support.patience import WORKER, lengthen
from tests.support.whole_worker import until_whole

HELLO = {"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": True}}
PHOTO = {
    "name": "self.camera.take_photo",
    "description": "Takes a photo.",
    "inputSchema": {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
}
VOLUME = {
    "name": "self.audio_speaker.set_volume",
    "description": "Sets the volume.",
    "inputSchema": {
        "type": "object",
        "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
        "required": ["volume"],
    },
}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "", "inputSchema": {"type": "object", "properties": {}}, **more}


def text(said: str) -> dict[str, Any]:
    """Return the result of a tool that answers so."""
    return {"content": [{"type": "text", "text": said}], "isError": False}


def asks(name: str, arguments: str = "{}", call: str = "c1") -> list[LlmEvent]:
    """Return a model's message that asks for one call."""
    return [CallsAsked((ToolCall(call, name, arguments),))]


def says(*pieces: str) -> list[LlmEvent]:
    return [TextDelta(piece) for piece in pieces]


@dataclass
class Scene:
    device: Device
    edge: SilentEdge
    llm: ScriptedLlm
    resources: WorkerResources
    broker: MosquittoServer
    keys: CredentialKeys
    opened: list[Device] = field(default_factory=list)
    """Devices that the scene connected."""

    async def discover(self, *pages: list[dict[str, Any]]) -> None:
        """Answer the worker's questions for the device's tools."""
        await self.initialize()
        for number, page in enumerate(pages, 1):
            more = {"nextCursor": f"page {number}"} if number < len(pages) else {}
            await self.list_page({"tools": page, **more})

    async def initialize(self) -> None:
        initialize = await self.device.hear_request("initialize")
        await self.device.answer(initialize, result={"serverInfo": {"name": "board", "version": "2.4.2"}})
        await self.device.hear_request("notifications/initialized")

    async def list_page(self, result: dict[str, Any]) -> str:
        """Answer a request for a page of tools; return its cursor."""
        request = await self.device.hear_request("tools/list")
        await self.device.answer(request, result=result)
        return str(request["params"]["cursor"])

    async def greet(self) -> str:
        """Open a session; return its id."""
        await self.device.say(HELLO)
        welcome = await self.device.hear_type("hello")
        assert (await self.session()).session == welcome["session_id"]
        return str(welcome["session_id"])

    async def session(self) -> edge_messages.OpenSessionCommand:
        """Return the next session that the edge is to open for the device."""
        opened = await self.edge.next(edge_messages.OpenSessionCommand)
        while opened.device != self.device.mac:  # what another test's worker had left unacknowledged
            opened = await self.edge.next(edge_messages.OpenSessionCommand)
        return opened

    async def prepare(self, *tools: dict[str, Any]) -> str:
        """Let the device have these tools and a session; return its id."""
        await self.discover(list(tools))
        await self.tools(len(tools))
        return await self.greet()

    async def utter(self, session: str, said: str, turn: str = "") -> str:
        """Post what the edge posts after an utterance; return the turn's id."""
        turn = turn or secrets.token_hex(8)
        await self.post(
            edge_messages.UtteranceEvent(device=self.device.mac, session=session, turn=turn, text=said, language="en")
        )
        return turn

    async def post(self, event: edge_messages.EdgeEvent) -> None:
        await self.resources.inboxes.to_shard(self.resources.store.keys.shard(self.device.mac), event)

    async def spoken(self) -> list[str]:
        """Return the sentences that the edge is given until the answer ends; nothing else may come."""
        texts = []
        async with asyncio.timeout(PATIENCE):
            while not isinstance(last := await self.edge.next(), edge_messages.EndAnswerCommand):
                if isinstance(last, edge_messages.SpeakSentenceCommand):
                    assert last.index == len(texts)
                    texts.append(last.text)
        assert last.index == len(texts)
        return texts

    async def tools(self, count: int = 1) -> list[str]:
        """Return the names of the device's tools, once at least so many are known."""
        async with asyncio.timeout(PATIENCE):
            while len(tools := await self.resources.tools.read(self.device.mac)) < count:
                await asyncio.sleep(0.01)
        return [tool.name for tool in tools]

    async def history(self, least: int = 1) -> list[Message]:
        """Return what is remembered, once it is at least so much."""
        async with asyncio.timeout(PATIENCE):
            while len(known := (await self.resources.conversations.context(self.device.mac, 100)).history) < least:
                await asyncio.sleep(0.01)
        return list(known)

    async def until_remembered(self, *wanted: tuple[str, str]) -> None:
        """Wait until the history is this: role and text of each message."""
        async with asyncio.timeout(PATIENCE):
            while [(one.role, one.text) for one in await self.history()] != list(wanted):
                await asyncio.sleep(0.01)

    async def bootstrap(self, mac: str) -> None:
        """Write down what bootstrap does of xiaozhi firmware."""
        await note_device(self.resources.store, mac, {"kid": "k1"}, "xiaozhi")

    async def another_device(self) -> Device:
        mac = random_mac()
        await self.bootstrap(mac)
        return await self.connect(mac)

    async def unknown_device(self) -> Device:
        """Return a device that connects without ever having bootstrapped."""
        return await self.connect(random_mac())

    async def reconnect(self) -> None:
        """Connect anew, as firmware does after its connection was lost."""
        await self.device.close()
        self.device = await self.connect(self.device.mac)

    async def connect(self, mac: str) -> Device:
        self.opened.append(await Device.connect(self.broker, self.keys, mac))
        return self.opened[-1]


def random_mac() -> str:
    return ":".join(f"{byte:02x}" for byte in secrets.token_bytes(6))


@asynccontextmanager
async def work(resources: WorkerResources, broker: MosquittoServer) -> AsyncIterator[None]:
    """Run the only worker until the end of the block, which begins when it hears all devices."""
    worker = Worker(resources, secrets.token_hex(4), parse_mqtt_url(broker.url))
    async with running("worker", worker.run):
        await until_whole(worker, resources.settings.shards)
        yield


@asynccontextmanager
async def stand(redis_url: str, broker: MosquittoServer, keys: CredentialKeys, **settings: Any) -> AsyncIterator[Scene]:
    """Set everything up except that no worker runs and the device is not connected."""
    store, llm = await Store.open(redis_url, 2), ScriptedLlm()
    # A worker that ends gives its shards back; one that stands still for a while keeps them, and turns and calls wait.
    patient = dict.fromkeys(("lease_seconds", "tool_seconds", "turn_seconds"), PATIENCE)
    settings = {"shards": 2, **patient, **settings}
    resources = WorkerResources.of(slice_of(load(**settings), WorkerSettings), keys, OneModel(llm), store)
    edge = SilentEdge(resources.edges, Inboxes(store))
    await edge.announce()
    one = Scene(Device(None, random_mac()), edge, llm, resources, broker, keys)
    await one.bootstrap(one.device.mac)
    with pytest.MonkeyPatch.context() as patch:
        lengthen(patch, WORKER)
        try:
            yield one
        finally:
            for device in one.opened:
                await device.close()
            await store.close()


@asynccontextmanager
async def scene(redis_url: str, broker: MosquittoServer, keys: CredentialKeys, **settings: Any) -> AsyncIterator[Scene]:
    """Set everything up; the device connects to a worker that is ready."""
    async with stand(redis_url, broker, keys, **settings) as one, work(one.resources, broker):
        await one.reconnect()
        yield one
        await one.device.close()

"""A client of the LLM Gateway API that checks the form of every message it gets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.support.gateway_messages import Message, faults
from tests.support.gateway_stage import UNHURRIED

LIMIT = 240.0
Tools = Mapping[str, Callable[[dict[str, Any]], Any]]
"""What a client's tools return; what they raise as ValueError is the reason of a failure."""
BATTERY = {
    "name": "get_battery",
    "description": "获取设备当前电量百分比",
    "parameters": {"type": "object", "properties": {}, "required": []},
}
VOLUME = {
    "name": "set_volume",
    "description": "设置设备音量",
    "parameters": {
        "type": "object",
        "properties": {"volume": {"type": "integer", "description": "音量值 0-100", "minimum": 0, "maximum": 100}},
        "required": ["volume"],
    },
}


def tool(name: str, **parameters: Any) -> Message:
    """Return the definition of a tool with these properties."""
    schema = {"type": "object", "properties": parameters, "required": []}
    return {"name": name, "description": f"{name} 的说明", "parameters": schema}


@dataclass
class Turn:
    """Everything that came from a text input until its answer."""

    messages: list[Message] = field(default_factory=list)

    @property
    def last(self) -> Message:
        return self.messages[-1]

    @property
    def content(self) -> str:
        assert self.last["type"] == "llm_response", self.last
        return str(self.last["content"])

    @property
    def code(self) -> str:
        assert self.last["type"] == "error", self.last
        return str(self.last["code"])

    def all(self, kind: str) -> list[Message]:
        return [message for message in self.messages if message["type"] == kind]

    def kinds(self) -> list[str]:
        """Return the types in their order, of statuses the status."""
        return [str(message["status"] if message["type"] == "status" else message["type"]) for message in self.messages]


class GatewayClient:
    """One connection; `session` is the id that the server gave it."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.session = ""

    async def send(self, kind: str, **members: Any) -> None:
        await self.send_raw(json.dumps({"type": kind, **members}, ensure_ascii=False))

    async def send_raw(self, frame: str | bytes) -> None:
        await self.socket.send(frame)

    async def next(self) -> Message:
        """Return the next message, whatever it is."""
        async with asyncio.timeout(LIMIT):
            frame = await self.socket.recv()
        assert isinstance(frame, str), "messages are text frames"
        message = json.loads(frame)
        assert isinstance(message, dict)
        assert not faults(message), (faults(message), message)
        return message

    async def reply(self) -> Message:
        """Return the next message but for the end of an earlier turn."""
        message = await self.next()
        return await self.next() if message.get("status") == "idle" else message

    async def expect(self, kind: str) -> Message:
        """Return the next message but for statuses; it must be of this type."""
        message = await self.next()
        while message["type"] == "status" and kind != "status":
            message = await self.next()
        assert message["type"] == kind, message
        return message

    async def settled(self) -> list[Message]:
        """Return what comes before the answer to a ping that is sent now."""
        await self.send("ping")
        found = [await self.next()]
        while found[-1]["type"] != "pong":
            found.append(await self.next())
        return found[:-1]

    async def register(self, *tools: Message) -> Message:
        await self.send("register_tools", tools=list(tools))
        return await self.reply()

    async def turn(self, text: str, tools: Tools | None = None, **members: Any) -> Turn:
        """Say something; answer callbacks with `tools`, and return with the final answer or the error."""
        await self.send("text_input", text=text, **members)
        return await self.finish(tools)

    async def finish(self, tools: Tools | None = None) -> Turn:
        turn = Turn()
        while True:
            message = await self.next()
            turn.messages.append(message)
            if message["type"] == "tool_callback":
                assert tools is not None, message
                await self.send("tool_result", **answer(message, tools))
            elif message["type"] == "error" or message.get("is_final"):
                return turn

    async def until_callbacks(self, count: int = 1) -> list[Message]:
        """Return the next callbacks, so many of them."""
        found: list[Message] = []
        while len(found) < count:
            found.append(await self.expect("tool_callback"))
        return found


def answer(callback: Message, tools: Tools) -> Message:
    """Return what a client answers to a callback."""
    call = {"call_id": callback["call_id"]}
    if callback["tool_name"] not in tools:
        return {**call, "success": False, "error": f"Tool '{callback['tool_name']}' not found"}
    try:
        return {**call, "success": True, "result": tools[callback["tool_name"]](callback["arguments"])}
    except ValueError as error:
        return {**call, "success": False, "error": str(error)}


@asynccontextmanager
async def gateway_client(url: str, **options: Any) -> AsyncIterator[GatewayClient]:
    """Connect; the block begins when the server has said so."""
    async with asyncio.timeout(LIMIT):
        socket = await connect(url, max_size=None, proxy=None, **UNHURRIED | options)
    try:
        client = GatewayClient(socket)
        connected = await client.next()
        assert connected["type"] == "status", connected
        assert connected["status"] == "connected", connected
        client.session = connected["data"]["session_id"]
        yield client
    finally:
        async with asyncio.timeout(LIMIT):
            await socket.close()

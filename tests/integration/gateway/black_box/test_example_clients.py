"""What clients of the kind printed in section 10 do, message by message, with everything that they silently rely on."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.support.gateway_client import BATTERY, LIMIT, VOLUME
from tests.support.gateway_process import GatewayProcess
from tests.support.gateway_stage import UNHURRIED
from tests.support.openai_server import spoken
from tests.support.scripted_llm import ScriptedLlm, asks, roles

TOOLS = [BATTERY, VOLUME]
QUESTIONS = ("我的电量还有多少？", "请把音量调到50")
ANSWERS = ("还有百分之八十五。", "音量已经是五十。")


@pytest.fixture(autouse=True)
def script(llm: ScriptedLlm) -> None:
    llm.when(QUESTIONS[0], asks(("get_battery", {})), spoken(ANSWERS[0]))
    llm.when(QUESTIONS[1], asks(("set_volume", {"volume": 50})), spoken(ANSWERS[1]))


def run_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "get_battery":
        return {"level": 85, "charging": False}
    return {"volume": arguments["volume"], "status": "set"}


class ReadingClient:
    """Reads the next message wherever it expects one, and looks at nothing else: the manner of 10.1."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.session = ""

    async def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.socket.recv())
        return found

    async def write(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def begin(self) -> int:
        """Connect, configure, register; return how many tools were counted."""
        self.session = (await self.read())["data"]["session_id"]
        await self.write(type="configure", enable_context=True)
        await self.write(type="register_tools", tools=TOOLS)
        confirmation = await self.read()
        assert confirmation["type"] == "tools_registered", "the next message after the registration confirms it"
        assert all(tool["status"] == "registered" for tool in confirmation["tools"])
        return int(confirmation["count"])

    async def ask(self, text: str) -> str:
        await self.write(type="text_input", text=text, session_id=self.session)
        while True:
            message = await self.read()
            if message["type"] == "tool_callback":
                result = run_tool(message["tool_name"], message.get("arguments", {}))
                await self.write(type="tool_result", call_id=message["call_id"], success=True, result=result)
            elif message["type"] == "llm_response":
                return str(message["content"])
            assert message["type"] != "error", message


@pytest.mark.requirement("GW-150")
async def test_a_client_that_reads_message_by_message(gateway: GatewayProcess, llm: ScriptedLlm) -> None:
    async with connect(gateway.url, proxy=None, **UNHURRIED) as socket, asyncio.timeout(LIMIT):
        client = ReadingClient(socket)
        assert await client.begin() == 2
        assert [await client.ask(question) for question in QUESTIONS] == list(ANSWERS)
    assert roles(llm.asked(QUESTIONS[1])[-1], "user")[-2:] == list(QUESTIONS)


@pytest.mark.requirement("GW-151")
async def test_a_client_that_is_driven_by_events(gateway: GatewayProcess) -> None:
    """The manner of 10.2: a listener for everything; registration and configuration are sent without waiting."""
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue(100)

    async def listen(socket: ClientConnection) -> None:
        async for frame in socket:
            message = json.loads(frame)
            if message["type"] == "tool_callback":
                result = run_tool(message["tool_name"], message["arguments"])
                answer = {"type": "tool_result", "call_id": message["call_id"], "success": True, "result": result}
                await socket.send(json.dumps(answer))
            events.put_nowait(message)

    async def event(*kinds: str) -> dict[str, Any]:
        while (message := await events.get())["type"] not in kinds:
            pass
        return message

    async with (
        connect(gateway.url, proxy=None, **UNHURRIED) as socket,
        asyncio.timeout(LIMIT),
        asyncio.TaskGroup() as group,
    ):
        listener = group.create_task(listen(socket), name="listener")
        session = (await event("status"))["data"]["session_id"]
        await socket.send(json.dumps({"type": "register_tools", "tools": TOOLS}))
        assert (await event("tools_registered"))["count"] == 2
        await socket.send(json.dumps({"type": "configure", "enable_context": True}))
        for question, answer in zip(QUESTIONS, ANSWERS, strict=True):
            await socket.send(json.dumps({"type": "text_input", "text": question, "session_id": session}))
            assert (await event("llm_response", "error"))["content"] == answer
        listener.cancel()


Send = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]


async def react(message: dict[str, Any], send: Send) -> None:
    """Do what the embedded client of 10.3 does with one message."""
    if message["type"] == "status" and message["status"] == "connected":
        await send({"type": "register_tools", "tools": TOOLS})
    elif message["type"] == "tool_callback":
        result = run_tool(message["tool_name"], message["arguments"])
        await send({"type": "tool_result", "call_id": message["call_id"], "success": True, "result": result})
    elif message["type"] == "error":
        assert isinstance(message["code"], str)
        assert isinstance(message["message"], str)


@pytest.mark.requirement("GW-152")
async def test_an_embedded_client_that_talks_without_waiting(gateway: GatewayProcess) -> None:
    """The manner of 10.3: JSON with line breaks, tools registered at once, and a text after each message that came."""
    texts, answers, session = 0, [], ""

    async with connect(gateway.url, proxy=None, **UNHURRIED) as socket, asyncio.timeout(LIMIT):

        async def send(message: dict[str, Any]) -> None:
            await socket.send(json.dumps(message, indent="\t", ensure_ascii=False))

        while texts < 5 or len(answers) < texts:
            message = json.loads(await socket.recv())
            await react(message, send)
            if message.get("status") == "connected":
                session = message["data"]["session_id"][:63]
            if message["type"] in ("llm_response", "error"):
                answers.append(message.get("content", message))
            if texts < 5:
                await send({"type": "text_input", "text": QUESTIONS[0], "session_id": session})
                texts += 1
        await send({"type": "ping"})
        rest = [json.loads(await socket.recv())]
        while rest[-1]["type"] != "pong":
            rest.append(json.loads(await socket.recv()))
    assert answers == [ANSWERS[0]] * 5
    assert {message["type"] for message in rest} <= {"status", "pong"}

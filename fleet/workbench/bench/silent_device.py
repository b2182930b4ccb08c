"""A device without audio: it connects, says hello and goodbye, and answers MCP requests."""

import asyncio
import itertools
import json
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

from fleet.adapters.net.mqtt.connection import MqttConnection
from fleet.ground.errors import Unavailable
from fleet.wire import topics
from fleet.wire.identity import Credentials
from fleet.wire.mqtt import packets
from fleet.wire.mqtt.packets import Connack, Connect, Publish
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.tools.board import Board
from fleet.workbench.sim.tools.board_tools import tools_of
from fleet.workbench.sim.tools.mcp_server import McpServer

_KEEPALIVE = 240
_CONNECT_SECONDS = 60.0
_CURSOR = "second page"
_HELLO = (
    b'{"type":"hello","version":3,"features":{"mcp":true},"transport":"udp",'
    b'"audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}'
)


@cache
def _answers(tools: int) -> dict[str, str]:
    """Return what stock firmware answers, without the id, which comes last; the key of a later page is its cursor.

    Args:
        tools: How many there are, on two pages; 0: those of stock firmware, on one.
    """
    server = McpServer(Profile(name="bench"), tools_of(Profile(name="bench")), Board())
    found: dict[str, Any] = {}
    for method in ("initialize", "tools/list"):
        answer = server.receive({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
        found[method] = json.loads(str(answer))["result"]
    if tools:
        stock = list(enumerate(itertools.islice(itertools.cycle(found["tools/list"]["tools"]), tools)))
        offered = [{**tool, "name": f"{tool['name']}_{number}"} for number, tool in stock]
        found["tools/list"] = {"tools": offered[: tools // 2], "nextCursor": _CURSOR}
        found[_CURSOR] = {"tools": offered[tools // 2 :]}
    found["tools/call"] = {"content": [{"type": "text", "text": "true"}], "isError": False}
    return {method: json.dumps(result, separators=(",", ":")) for method, result in found.items()}


class SilentDevice:
    """One device.

    Args:
        number: Gives it its MAC.
        tools: How many it has, on two pages; 0: those of stock firmware, on one.
        topic: Where it publishes; by default where fleet hears it.
    """

    def __init__(self, number: int, tools: int = 0, topic: str = "") -> None:
        self.mac = mac(number)
        self.session = ""
        self.udp: dict[str, str] = {}
        """Of the last answer to a hello: where its audio goes, and the key."""
        self.calls = 0
        """Tool calls that it was asked to do."""
        self.listed = asyncio.Event()
        """Set when it was asked for the last page of its tools."""
        self._answers = _answers(tools)
        self._topic = topic or topics.up_topic(self.mac)
        self._welcomed: deque[Callable[[], None]] = deque()
        self._connection: MqttConnection | None = None

    async def connect(self, port: int, credentials: Credentials) -> None:
        """Sign in at the broker.

        Raises:
            Unavailable: It refused, or does not answer.
        """
        # At once: a first request may come together with the answer to CONNECT.
        connection = self._connection = MqttConnection(_KEEPALIVE, self._take)
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().create_connection(lambda: connection, LOOPBACK, port)
            answer = await connection.ask(packets.connect(Connect.of(credentials, _KEEPALIVE)))
        if not isinstance(answer, Connack) or answer.code:
            raise Unavailable("the broker refused a device of the benchmark")

    async def close(self) -> None:
        if self._connection:
            await self._connection.close()

    def hello(self, welcomed: Callable[[], None]) -> None:
        """Say hello; `welcomed` is called when the answer has come."""
        self._welcomed.append(welcomed)
        self._send(_HELLO)

    def forget(self) -> None:
        """Wait no more for answers to hellos."""
        self._welcomed.clear()

    def goodbye(self) -> None:
        """End the session."""
        self._send(b'{"type":"goodbye","session_id":"%b"}' % self.session.encode())
        self.session = ""

    def _take(self, message: Publish) -> None:
        order = json.loads(message.payload)
        match order.get("type"):
            case "hello":
                self.session, self.udp = order["session_id"], order["udp"]
                if self._welcomed:
                    self._welcomed.popleft()()
            case "mcp":
                self._answer(order["payload"])

    def _answer(self, request: dict[str, object]) -> None:
        method = str(request.get("method"))
        params = request.get("params")
        key = str(params.get("cursor") or method) if isinstance(params, dict) else method
        if key not in self._answers:
            return
        self.calls += method == "tools/call"
        if method == "tools/list" and "nextCursor" not in self._answers[key]:
            self.listed.set()
        self._send(
            f'{{"session_id":"{self.session}","type":"mcp","payload":{{"jsonrpc":"2.0","id":{request["id"]},'
            f'"result":{self._answers[key]}}}}}'.encode()
        )

    def _send(self, payload: bytes) -> None:
        if self._connection:
            self._connection.send(packets.publish(self._topic, payload))


def mac(number: int) -> str:
    """Return the MAC of one device of many."""
    return "02:be:" + ":".join(f"{number >> shift & 255:02x}" for shift in (24, 16, 8, 0))

"""A device without audio: it connects, says hello and goodbye, and answers MCP requests."""

import asyncio
import json
from collections import deque
from collections.abc import Callable

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
_CONNECT_SECONDS = 10.0
_HELLO = (
    b'{"type":"hello","version":3,"features":{"mcp":true},"transport":"udp",'
    b'"audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}'
)


def _answers() -> dict[str, str]:
    """Return what stock firmware answers, without the id, which comes last."""
    server = McpServer(Profile(name="bench"), tools_of(Profile(name="bench")), Board())
    found = {}
    for method in ("initialize", "tools/list"):
        answer = server.receive({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
        found[method] = json.dumps(json.loads(str(answer))["result"], separators=(",", ":"))
    return found | {"tools/call": '{"content":[{"type":"text","text":"true"}],"isError":false}'}


_ANSWERS = _answers()


class SilentDevice:
    """One device.

    Args:
        number: Gives it its MAC.
    """

    def __init__(self, number: int) -> None:
        self.mac = mac(number)
        self.session = ""
        self.calls = 0
        """Tool calls that it was asked to do."""
        self.listed = asyncio.Event()
        """Set when it was asked for its tools."""
        self._topic = topics.up_topic(self.mac)
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

    def goodbye(self) -> None:
        """End the session."""
        self._send(b'{"type":"goodbye","session_id":"%b"}' % self.session.encode())
        self.session = ""

    def _take(self, message: Publish) -> None:
        order = json.loads(message.payload)
        match order.get("type"):
            case "hello":
                self.session = order["session_id"]
                if self._welcomed:
                    self._welcomed.popleft()()
            case "mcp":
                self._answer(order["payload"])

    def _answer(self, request: dict[str, object]) -> None:
        method = str(request.get("method"))
        if method not in _ANSWERS:
            return
        self.calls += method == "tools/call"
        if method == "tools/list":
            self.listed.set()
        self._send(
            f'{{"session_id":"{self.session}","type":"mcp","payload":{{"jsonrpc":"2.0","id":{request["id"]},'
            f'"result":{_ANSWERS[method]}}}}}'.encode()
        )

    def _send(self, payload: bytes) -> None:
        if self._connection:
            self._connection.send(packets.publish(self._topic, payload))


def mac(number: int) -> str:
    """Return the MAC of one device of many."""
    return "02:be:" + ":".join(f"{number >> shift & 255:02x}" for shift in (24, 16, 8, 0))

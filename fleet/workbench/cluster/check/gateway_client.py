"""A client of the gateway: keeps one session over several connections."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

import websockets
from websockets.exceptions import ConnectionClosed, WebSocketException

from fleet.workbench.cluster.check.history import History, Turn
from fleet.workbench.cluster.check.models import CALLED

_ANSWER_SECONDS = 30.0
_OPEN_SECONDS = 10.0
_MOST_ATTEMPTS = 5
_PARAMETERS = {
    "type": "object",
    "properties": {"level": {"type": "integer"}, "seconds": {"type": "integer"}},
    "required": ["level"],
}
_TOOL = {"name": CALLED.replace(".", "_"), "description": "Switches an output.", "parameters": _PARAMETERS}

Message = dict[str, Any]


class GatewayClient:
    """Asks questions through a gateway; when the gateway closes the connection, it reconnects and resumes its session.

    Args:
        name: Of the client.
        url: Of the gateway.
        marks: Numbers that only this client says.
        history: Records the turns.
        rng: Draws the pauses.
    """

    def __init__(self, name: str, url: str, marks: Sequence[int], history: History, rng: random.Random) -> None:
        self.name = name
        self._url, self._history, self._rng = url, history, rng
        self._marks: Iterator[int] = cycle(marks)
        self._clock = asyncio.get_running_loop().time
        self._socket: websockets.ClientConnection | None = None
        self._session = ""
        history.users.append(name)

    async def talk(self, over: Callable[[], bool]) -> None:
        """Ask one question after the other until the restarts are over, then one more."""
        try:
            while not over():
                await self.ask()
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))
            await self.ask()
        finally:
            if self._socket is not None:
                await self._socket.close()

    async def ask(self) -> None:
        """Ask one question and wait for the answer."""
        turn = self._history.begin(self.name, "client", next(self._marks), self._clock())
        for _ in range(_MOST_ATTEMPTS):
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    if await self._ask_once(turn):
                        break
            except (OSError, TimeoutError, WebSocketException) as error:
                self._socket = None
                turn.notes.append(f"no connection: {error or type(error).__name__}")
        turn.ended = self._clock()
        turn.outcome = "answered" if turn.answer else "lost"

    async def _ask_once(self, turn: Turn) -> bool:
        """Ask once; return whether the turn is over."""
        accepted = False
        try:
            socket = self._socket or await self._connect()
            turn.asked = self._clock()
            await socket.send(json.dumps({"type": "text_input", "text": f"scene {turn.mark}: please act"}))
            while True:
                message = await _receive(socket)
                accepted = accepted or message.get("status") != "idle"
                if await self._handle(turn, socket, message):
                    return True
        except ConnectionClosed as closed:
            self._socket = None
            if accepted:
                turn.notes.append(f"connection closed during the turn: {closed}")
                return True
            # The gateway closed the connection before it began the turn: ask again.
            turn.repeats += 1
            return False

    async def _handle(self, turn: Turn, socket: websockets.ClientConnection, message: Message) -> bool:
        """React to a message of the turn; return whether it was the last one."""
        match message["type"]:
            case "tool_callback":
                turn.calls += 1
                call = {"type": "tool_result", "call_id": message["call_id"], "success": True, "result": True}
                await socket.send(json.dumps(call))
            case "llm_response":
                turn.heard = turn.heard or self._clock()
                turn.answer += str(message["content"])
                return bool(message["is_final"])
            case "error":
                turn.notes.append(f"{message['code']}: {message.get('details')}")
                return True
        return False

    async def _connect(self) -> websockets.ClientConnection:
        """Connect, resume the session if there is one, and register the tool."""
        socket = await websockets.connect(self._url, compression=None, open_timeout=_OPEN_SECONDS, proxy=None)
        session = (await _receive(socket))["data"]["session_id"]
        if self._session:
            await socket.send(json.dumps({"type": "start_session", "session_id": self._session}))
            session = (await _receive(socket)).get("data", {}).get("session_id")
            if session != self._session:
                self._history.add_fault("session not resumed", f"{self.name} asked for {self._session}, got {session}")
        self._session = str(session)
        await socket.send(json.dumps({"type": "configure", "enable_context": True}))
        await socket.send(json.dumps({"type": "register_tools", "tools": [_TOOL]}))
        await _receive(socket)
        self._socket = socket
        return socket


async def _receive(socket: websockets.ClientConnection) -> Message:
    message: Message = json.loads(await socket.recv())
    return message
